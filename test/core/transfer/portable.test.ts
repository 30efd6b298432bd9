/** The lines of an export: whatever a record holds comes in as it went out, and what is no such line is refused by number. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isTerminal, type TaskRecord } from '../../../src/core/task.ts'
import { type ExportLine, printLine, readLine, requeueImported } from '../../../src/core/transfer/portable.ts'
import { population } from '../../../src/testing/conformance/moves.ts'
import { fresh, NOW } from '../build.ts'

const instant = fc.integer({ min: 0, max: 4_000_000_000_000 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
/** As our own writer makes it, and as somebody else's may. */
const json = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.constantFrom(
    'null',
    '""',
    ' { "a" : 1 } ',
    '1.0',
    '1e400',
    '12345678901234567890',
    '{"b":1,"1":2}',
    '"\\u0041"',
    '-0',
  ),
)

const task: fc.Arbitrary<TaskRecord> = fc
  .record({
    of: fc.constantFrom(fresh(), ...population),
    input: json,
    output: maybe(json),
    progress: maybe(json),
    availableAt: instant,
    expiresAt: maybe(instant),
    cancelRequestedAt: maybe(instant),
    idempotencyKey: maybe(fc.string({ minLength: 1 })),
    tags: maybe(fc.dictionary(fc.string({ minLength: 1 }), fc.string())),
    priority: fc.integer({ min: -1000, max: 1000 }),
    attempts: fc.nat(),
    maxRetries: maybe(fc.nat()),
    timeout: maybe(fc.nat()),
  })
  .map(({ of, ...fields }) => ({ ...of, ...fields, outputEncoding: 'json' as const }))

const through = (line: ExportLine): unknown => {
  const text = printLine(line)
  expect(text).not.toContain('\n')
  return readLine(text, 1)
}

describe('a line', () => {
  it('of a task brings it back field for field, whatever its payloads are', () => {
    fc.assert(
      fc.property(task, (record) => {
        const line: ExportLine = { kind: 'task', task: record, key: null }
        expect(through(line)).toEqual(line)
      }),
      { numRuns: 500 },
    )
  })

  it('of every kind of task that the machine makes brings it back, bytes among them', () => {
    for (const record of [...population, { ...fresh(), input: 'AP8=', encoding: 'base64' as const }]) {
      const line: ExportLine = { kind: 'task', task: record, key: null }
      expect(through(line)).toEqual(line)
    }
  })

  it('of a key, a pause, a queue and a schedule brings it back', () => {
    const key = { key: 'k "1"', taskId: fresh().id, hash: 'h', expiresAt: NOW, exact: true }
    const schedule = {
      id: 'tick',
      incarnation: fresh().id,
      type: 'work',
      input: '{"a":1}',
      encoding: 'json',
      cron: null,
      timezone: null,
      every: 50,
      mode: 'fixed-rate',
      overlap: 'skip',
      catchUp: 'all',
      options: { queue: 'mail' },
      paused: false,
      origin: NOW,
      cursor: NOW + 100,
      firing: { slots: [NOW, NOW + 50], by: 'me', at: NOW },
      lastTaskId: null,
      lastSkipped: { slot: NOW, reason: 'overlap' },
      createdAt: NOW,
      updatedAt: NOW,
    } as const
    for (const line of [
      { kind: 'task', task: { ...fresh(), idempotencyKey: key.key }, key },
      { kind: 'key', key },
      { kind: 'queue', queue: 'mail' },
      {
        kind: 'queue',
        queue: 'mail',
        flow: {
          limits: { concurrency: 2, rate: '60/1m', at: '2026-01-01T00:00:00.000Z', by: 'ann' },
          pausedGroups: {
            'acme "1"': { at: '2026-01-01T00:00:00.000Z', by: 'ann', until: '2126-01-01T00:00:00.000Z' },
          },
        },
      },
      { kind: 'pause', pause: { queue: 'mail', at: '2026-01-01T00:00:00.000Z', by: 'ann', reason: 'x' } },
      { kind: 'schedule', schedule },
      { kind: 'schedule', schedule: { ...schedule, firing: null, lastSkipped: null } },
    ] as const satisfies readonly ExportLine[])
      expect(through(line)).toEqual(line)
  })

  it('with an instant after the year 9999, which an older release took, brings the last of that year', () => {
    const line = { kind: 'task', task: { ...fresh(), availableAt: 8_640_000_000_000_000 }, key: null } as const
    expect(through(line)).toMatchObject({ task: { availableAt: 253_402_300_799_999 } })
  })

  it('of a task from a release without groups brings a task without a group', () => {
    const { group: _, ...older } = JSON.parse(printLine({ kind: 'task', task: fresh(), key: null })).task
    expect(readLine(JSON.stringify({ task: older }), 1)).toMatchObject({ task: { group: null } })
  })

  it('has instants and payloads that other programs can read', () => {
    const line = JSON.parse(printLine({ kind: 'task', task: { ...fresh(), input: '{"to":"ann"}' }, key: null }))
    expect(line.task).toMatchObject({ input: { to: 'ann' }, createdAt: '2026-01-28T12:00:00.000Z' })
  })
})

describe('what is no line of an export is refused with its number:', () => {
  const sound = JSON.parse(printLine({ kind: 'task', task: fresh(), key: null })).task
  const spoilt = (fields: object): string => JSON.stringify({ task: { ...sound, ...fields } })
  const { input: _, ...withoutInput } = sound
  it.each([
    ['{"task":', /it is not a JSON object/],
    ['[]', /it is not a JSON object/],
    ['{}', /it is no line of an export/],
    ['{"holdfast":"export","version":2}', /version is 2; this release reads version 1/],
    ['{"holdfast":"backup"}', /not an export/],
    [spoilt({ id: 'x' }), /is not a UUID/],
    [spoilt({ queue: 'a b' }), /queue/],
    [spoilt({ status: 'done' }), /task.status cannot be "done"/],
    [spoilt({ attempts: -1 }), /task.attempts cannot be -1/],
    [spoilt({ revision: 0 }), /task.revision/],
    [spoilt({ createdAt: 'yesterday' }), /task.createdAt cannot be "yesterday"/],
    [spoilt({ availableAt: 253_402_300_800_000 }), /task.availableAt cannot be 253402300800000/],
    [spoilt({ expiresAt: 9e15 }), /task.expiresAt cannot be 9000000000000000/],
    [spoilt({ startedAt: 1.5 }), /task.startedAt cannot be 1.5/],
    [spoilt({ timeout: 1e15 }), /task.timeout/],
    [spoilt({ retryPolicy: { base: 1, max: 9e15, multiplier: 2, jitter: 'full' } }), /task.retryPolicy/],
    [spoilt({}).replace('"maxRetries":', '"timeout":1e999,"maxRetries":').replace('"timeout":300000,', ''), /timeout/],
    [spoilt({ history: [{ ...sound.history[0], availableAt: 9e15 }] }), /task.history/],
    [spoilt({ lastError: { name: 'E', message: '', at: 9e15, attempt: 1 } }), /task.lastError/],
    [spoilt({ status: 'running' }), /task.lease does not go with running/],
    [spoilt({ tags: { a: 1 } }), /task.tags/],
    [spoilt({ history: [{}] }), /task.history/],
    [spoilt({ colour: 'red' }), /task.colour is no field of a task/],
    [JSON.stringify({ task: withoutInput }), /task.input is missing/],
    ['{"key":{"key":"k"}}', /key has a field/],
    ['{"schedule":{"id":"x","encoding":"json","firing":null,"input":1}}', /type/],
    ['{"queue":"a b"}', /queue/],
    [spoilt({ group: 7 }), /task.group cannot be 7/],
    ['{"queue":"a","flow":7}', /flow is not a JSON object/],
    ['{"queue":"a","flow":{"limits":{"concurrency":0}}}', /concurrency must be/],
    ['{"queue":"a","flow":{"limits":{"colour":1}}}', /colour is not an option of limit/],
    ['{"queue":"a","flow":{"pausedGroups":{"acme":{}}}}', /the pause of group 'acme'/],
    ['{"queue":"a","flow":{"pausedGroups":{"":{"at":"x","by":"x"}}}}', /group/],
  ])('%s', (text, why) => {
    expect(() => readLine(text, 7)).toThrow(/^line 7: /)
    expect(() => readLine(text, 7)).toThrow(why)
  })
})

describe('a task that lands', () => {
  it('is as it was, unless it was running: then it is pending under its old fence, or cancelled if that was asked for', () => {
    for (const record of population) {
      const after = requeueImported(record, 'importer', NOW)
      if (record.status !== 'running') expect(after).toBe(record)
    }
    const lease = { token: 't.1', workerId: 'w', claimedAt: NOW, expiresAt: NOW + 5, ttl: 5 }
    const running: TaskRecord = { ...fresh(), status: 'running', lease, attempts: 3, revision: 7 }
    expect(requeueImported(running, 'importer', NOW)).toMatchObject({
      status: 'pending',
      lease: null,
      attempts: 3,
      retryCount: 0,
      revision: 8,
    })
    expect(requeueImported(running, 'importer', NOW).history.at(-1)).toMatchObject({ move: 'release', by: 'importer' })
    expect(isTerminal(requeueImported({ ...running, cancelRequestedAt: NOW }, 'importer', NOW).status)).toBe(true)
  })
})
