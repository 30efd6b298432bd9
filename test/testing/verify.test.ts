/** `verify`, on a store whose workers and producers keep logs; and each invariant with a bug that it notices. */
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { TaskRecord } from '../../src/core/task.ts'
import { type Client, connect, type Middleware, silentLogger } from '../../src/index.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import type { Store } from '../../src/store/store.ts'
import {
  FakeClock,
  type Invariant,
  openWitness,
  type Verification,
  type VerifyOptions,
  verify,
} from '../../src/testing/index.ts'
import { withMethods } from '../crash/planted.ts'

const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-witness-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

let client: Client
afterEach(() => client.close())

/** As the store returns them to whoever reads whole tasks. */
const rewriting = (store: Store, rewrite: (task: TaskRecord) => TaskRecord | null): Store =>
  withMethods(store, {
    get: async (ids) => (await store.get(ids)).map((task) => (task === null ? null : rewrite(task))),
  })

interface Scene {
  /** What a planted bug of the store makes of each task. */
  readonly rewrite?: (task: TaskRecord) => TaskRecord | null
  /** More lines in the log. */
  readonly lines?: (ids: readonly string[]) => readonly object[]
  /** Instead of the log as it is. */
  readonly edit?: (text: string) => string
  /** Between the witness and the handler. */
  readonly middleware?: Middleware
  readonly options?: VerifyOptions
}

/** Three tasks with keys: one fails once, one is run by a handler that returns bytes. */
const played = async ({ rewrite, lines, edit, middleware, options }: Scene = {}): Promise<Verification> => {
  const logs = folder()
  let isOver = false
  // A little in the past, so that all has happened before the logs are read.
  const clock = new FakeClock({ now: Date.now() - 10_000 })
  const store = rewriting(openMemory({ wall: () => clock.wall() }), (task) =>
    isOver && rewrite ? rewrite(task) : task,
  )
  client = await connect(store, { logger: silentLogger, clock, random: clock.random })
  const witness = openWitness(logs)
  const worker = client.worker({ id: 'w' }).use(witness.runs)
  if (middleware) worker.use(middleware)
  worker
    .handle('echo', (input) => input)
    .handle('twice', (_, { attempt }) => {
      if (attempt === 1) throw new Error('once')
      return attempt
    })
    .handle('bytes', () => new Uint8Array([1, 2, 3]))
  witness.serves({ worker: worker.id, queues: ['default'], types: worker.types })
  const retryPolicy = { base: '1ms', jitter: 'none' } as const
  const tasks = [
    await witness.submit(() => client.submit('echo', { b: 1, a: [null] }, { idempotencyKey: 'k1' })),
    ...(
      await witness.submit(
        () =>
          client.submitMany([
            { type: 'twice', input: null, idempotencyKey: 'k2', retryPolicy },
            { type: 'bytes', input: 'x' },
          ]),
        2,
      )
    ).map((result) => (result.ok ? result.task : null)!),
  ]
  worker.start()
  await clock.advance(1_000)
  await worker.stop()
  isOver = true
  const ids = tasks.map(({ id }) => id)
  const [file] = readdirSync(logs).map((name) => join(logs, name))
  const stamp = { at: Date.now(), process: 'host/1' }
  for (const line of lines?.(ids) ?? []) appendFileSync(file!, `${JSON.stringify({ ...stamp, ...line })}\n`)
  if (edit) writeFileSync(file!, edit(readFileSync(file!, 'utf8')))
  return verify(client, { witness: [logs], drained: true, allSubmitted: true, clockBound: 0, ...options })
}

const broken = ({ verdicts }: Verification): readonly Invariant[] =>
  verdicts.filter(({ violations }) => violations > 0).map(({ invariant }) => invariant)

test('a store whose workers and producers told the truth has no violations, and every count says what was checked', async () => {
  const verification = await played()
  expect(verification.found).toEqual([])
  expect(verification).toMatchObject({ tasks: 3, violations: 0, witness: { files: 1, cut: 0, runs: 4 }, lateRuns: 0 })
  const counted = Object.fromEntries(verification.verdicts.map(({ invariant, checked }) => [invariant, checked]))
  expect(counted).toEqual({
    I1: 6,
    I1b: 3,
    I2: 4,
    I3: 8,
    I4: 3,
    I5: 3,
    I6: 4,
    I7: 4,
    I8: 11,
    I9: 0,
    I10: 0,
    I11: 3,
    I12: 4,
    I13: 7,
    I14: 0,
    I15: 2,
    I16: 4,
  })
  const unchecked = verification.verdicts.filter(({ checked }) => checked === 0).map(({ of }) => of)
  expect(unchecked).toEqual([
    'needs tasks of schedules',
    'needs deaths in the logs, and --recovery',
    'needs runs in the logs that were cut short',
  ])
})

test('without logs it says what it could not check', async () => {
  const { verdicts, found } = await played({ options: { witness: [], drained: false, allSubmitted: false } })
  expect(found).toEqual([])
  expect(verdicts.filter(({ checked }) => checked === 0).map(({ invariant }) => invariant)).toEqual([
    'I1',
    'I1b',
    'I9',
    'I10',
    'I11',
    'I12',
    'I13',
    'I14',
    'I15',
    'I16',
  ])
})

test('a line that its process did not finish is counted and left out', async () => {
  const { witness, found } = await played({ edit: (text) => `${text}{"what":"sta` })
  expect(witness.cut).toBe(1)
  expect(found).toEqual([])
})

test('a process that died in submitMany explains as many tasks as it was submitting', async () => {
  /** Without what it logged after the call of two tasks had returned. */
  const died = (text: string): string => {
    const [, call] = /"submitting","call":"([^"]+)","tasks":2/.exec(text)!
    const isAfter = (line: string): boolean => line.includes(call!) && !line.includes('"submitting"')
    return text
      .split('\n')
      .filter((line) => !isAfter(line))
      .join('\n')
  }
  expect((await played({ edit: died })).found).toEqual([])
  const { found } = await played({ edit: (text) => died(text).replace('"tasks":2', '"tasks":1') })
  expect(new Set(found.map(({ invariant }) => invariant))).toEqual(new Set(['I1b']))
})

const ofType = (type: string, change: (task: TaskRecord) => TaskRecord | null) => (task: TaskRecord) =>
  task.type === type ? change(task) : task

describe('a broken promise is noticed, and by its own number', () => {
  const scenes: readonly (readonly [Invariant, string, Scene, RegExp])[] = [
    ['I1', 'a task is gone', { rewrite: ofType('echo', () => null) }, /was accepted, and is not in the store/],
    [
      'I1b',
      'a task came from nowhere',
      { edit: (text) => text.replace(/.*"what":"submitting".*\n.*"what":"submitted".*\n/, '') },
      /was never submitted/,
    ],
    [
      'I2',
      'a lease was taken before it could lapse',
      {
        rewrite: ofType('twice', (task) => ({
          ...task,
          history: task.history.map((entry) => (entry.move === 'fail' ? { ...entry, move: 'lose-lease' } : entry)),
        })),
      },
      /lost the lease of run 1 \d+ ms before it could lapse/,
    ],
    [
      'I3',
      'a stale worker has written',
      {
        rewrite: ofType('echo', (task) => ({
          ...task,
          history: task.history.map((entry) => (entry.move === 'complete' ? { ...entry, op: 'other' } : entry)),
        })),
      },
      /was written under other, but/,
    ],
    [
      'I4',
      'a retry was not counted',
      { rewrite: ofType('twice', (task) => ({ ...task, retryCount: 0 })) },
      /its count says 0/,
    ],
    [
      'I5',
      'an ended task was claimed',
      {
        rewrite: ofType('echo', (task) => ({
          ...task,
          attempts: 2,
          revision: task.revision + 2,
          retryCount: 0,
          history: [...task.history, { ...task.history[1]!, n: 4, op: 't2' }, { ...task.history[2]!, n: 5, op: 't2' }],
        })),
      },
      /claim from completed to running/,
    ],
    [
      'I6',
      'two tasks have one key',
      { rewrite: ofType('twice', (task) => ({ ...task, idempotencyKey: 'k1' })) },
      /idempotency key k1 is also that of/,
    ],
    [
      'I7',
      'a task was claimed before it was due',
      { rewrite: ofType('echo', (task) => ({ ...task, createdAt: task.createdAt + 60_000 })) },
      /before it was due/,
    ],
    ['I8', 'an entry is missing', { rewrite: ofType('echo', (task) => ({ ...task, revision: 7 })) }, /its revision 7/],
    [
      'I10',
      'the task of a dead process waited for a minute',
      {
        rewrite: ofType('echo', (task) => ({
          ...task,
          history: task.history.map((entry) =>
            entry.move === 'complete' ? { ...entry, at: entry.at + 60_000 } : entry,
          ),
        })),
        edit: (text) => text.replace(/.*"what":"end".*\n/, ''),
        lines: () => [{ what: 'down', dead: `${hostname()}/${process.pid}` }],
        options: { recovery: 0 },
      },
      /after the process of run 1 died; at most 0 ms are allowed/,
    ],
    [
      'I11',
      'a task is completed that no handler ran',
      { edit: (text) => text.replace(/.*"what":"end".*\n/, '') },
      /whose handler did not return/,
    ],
    [
      'I11',
      'the output is not the one of the run',
      { rewrite: ofType('echo', (task) => ({ ...task, output: '{}' })) },
      /has another output than the run under fence 1/,
    ],
    [
      'I12',
      'a task began again without a reason',
      {
        lines: ([id]) => [
          { what: 'start', task: id, fence: 0, worker: 'w', type: 'echo', queue: 'default' },
          { what: 'threw', task: id, fence: 0 },
        ],
      },
      /was begun 2 times, which 0 returns to pending do not explain/,
    ],
    [
      'I13',
      'the handler saw another input',
      { rewrite: ofType('echo', (task) => ({ ...task, input: '{"a":[]}' })) },
      /saw another input than the store holds/,
    ],
    [
      'I14',
      'a poison task runs beyond its retries',
      {
        rewrite: ofType('twice', (task) => ({ ...task, maxRetries: 0, retryCount: 0 })),
        edit: (text) => text.replaceAll(/.*"(end|threw)".*\n/g, ''),
      },
      /was cut short 2 times; its retries allow 1/,
    ],
    [
      'I15',
      'an unhandled rejection',
      { lines: () => [{ what: 'unhandled', message: 'Error: boom' }] },
      /'Error: boom' was not handled/,
    ],
    [
      'I16',
      'a worker got a type that it does not serve',
      { lines: () => [{ what: 'serves', worker: 'w', queues: ['default'], types: ['echo'] }] },
      /does not serve type twice/,
    ],
  ]
  test.each(scenes)('%s: %s', async (invariant, _, scene, sentence) => {
    const verification = await played(scene)
    expect(broken(verification)).toContain(invariant)
    expect(verification.found.map(({ what }) => what).join('\n')).toMatch(sentence)
  })
})

describe('a schedule', () => {
  const played = async (
    overlap: 'allow' | 'skip',
    rewrite: (tasks: readonly TaskRecord[]) => (TaskRecord | null)[],
  ) => {
    const clock = new FakeClock()
    let isOver = false
    const plain = openMemory({ wall: () => clock.wall() })
    const store = withMethods(plain, {
      get: async (ids) => {
        const tasks = await plain.get(ids)
        return isOver ? rewrite(tasks as readonly TaskRecord[]) : tasks
      },
    })
    client = await connect(store, { logger: silentLogger, clock, random: clock.random })
    const times = { every: '10s', overlap, catchUp: 'all' } as const
    const { createdAt } = await client.schedules.create({ id: 'tick', type: 'work', input: null, ...times })
    const worker = client
      .worker()
      .handle('work', () => 'done')
      .start()
    await clock.advance(65_000)
    await worker.stop()
    isOver = true
    const { verdicts, found } = await verify(client)
    const { checked } = verdicts.find(({ invariant }) => invariant === 'I9')!
    return { checked, said: found.map(({ invariant, what }) => `${invariant}: ${what}`), createdAt }
  }

  test('has one task for each slot', async () => {
    for (const overlap of ['allow', 'skip'] as const) {
      expect(await played(overlap, (tasks) => [...tasks])).toMatchObject({ checked: 12, said: [] })
      await client.close()
    }
  })

  test('I9: a slot was skipped', async () => {
    const { said, createdAt } = await played('allow', (tasks) => tasks.map((task, i) => (i === 2 ? null : task)))
    const slot = new Date(createdAt + 30_000).toISOString()
    expect(said).toEqual([`I9: schedule tick: no task for the slot ${slot}`])
  })

  test.each([
    [11_000, []],
    [11_500, [expect.stringMatching(/^I9: was made for schedule tick 1\d\d\d ms before its last task \S+ had ended$/)]],
  ])('I9: a task was made before the last one had ended, beyond the error of clocks: %i ms', async (by, expected) => {
    const { said } = await played('skip', (tasks) =>
      tasks.map((task, i) => {
        const later = ({ at, ...entry }: TaskRecord['history'][number]) => ({ ...entry, at: at + by })
        return i === 2 ? { ...task, history: [task.history[0]!, ...task.history.slice(1).map(later)] } : task
      }),
    )
    expect(said).toEqual(expected)
  })

  test('I9: a slot has two tasks', async () => {
    const { said } = await played('allow', ([first, second, ...others]) => [
      first!,
      { ...second!, idempotencyKey: first!.idempotencyKey },
      ...others,
    ])
    expect(said.join('\n')).toMatch(/I9: was made for the same slot as/)
  })
})
