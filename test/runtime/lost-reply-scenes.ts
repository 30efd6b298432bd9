/** One scene for each kind of call whose reply can be lost, and what must be true afterwards. */
import { expect } from 'vitest'
import {
  type Client,
  type Handler,
  PermanentError,
  type ReplayReport,
  RescheduleError,
  type Task,
} from '../../src/index.ts'
import type { Change } from '../../src/store/store.ts'
import type { StoreCall } from '../../src/testing/lossy-store.ts'

export interface Stage {
  /** Its wire loses what `lose` says. */
  readonly client: Client
  /** Sees the store as it is. */
  readonly healthy: Client
  /** From now on, the first such call meets the fate. */
  lose(call: StoreCall, when?: (args: readonly unknown[]) => boolean): void
}

const moving = (move: string) => (args: readonly unknown[]) =>
  (args[0] as readonly Change[]).some(({ entry }) => entry.move === move)

const soon = { maxRetries: 3, retryPolicy: { base: 0, max: 0, jitter: 'none' } } as const

/** The task of the one result that there is. */
const only = ({ results }: ReplayReport): Task => {
  const [result] = results
  if (results.length === 1 && result !== undefined && 'task' in result) return result.task
  throw new Error(`not one task: ${JSON.stringify(results)}`)
}

export interface Scene {
  readonly name: string
  /** Needs the op in the history to be recognised: red when it is stripped. */
  readonly byOp: boolean
  play(stage: Stage): Promise<void>
}

export const scenes: readonly Scene[] = [
  {
    name: 'submit',
    byOp: true,
    async play({ client, healthy, lose }) {
      lose('insert')
      const task = await client.submit('work', 1)
      expect(task.deduplicated).toBe(false)
      expect((await healthy.list()).tasks.map(({ id }) => id)).toEqual([task.id])
    },
  },
  {
    name: 'submit under an id of the caller’s',
    byOp: true,
    async play({ client, healthy, lose }) {
      lose('insert')
      const id = '01900000-0000-7000-8000-000000000001'
      expect((await client.submit('work', 1, { id })).id).toBe(id)
      expect((await healthy.count()).count).toBe(1)
    },
  },
  {
    name: '[E02] submit with an idempotency key',
    byOp: true,
    async play({ client, healthy, lose }) {
      lose('insert')
      const task = await client.submit('work', 1, { idempotencyKey: 'k' })
      expect(task.deduplicated).toBe(false)
      expect((await healthy.submit('work', 1, { idempotencyKey: 'k' })).id).toBe(task.id)
      expect((await healthy.count()).count).toBe(1)
    },
  },
  {
    name: 'submitMany',
    byOp: true,
    async play({ client, healthy, lose }) {
      lose('insert')
      const results = await client.submitMany(
        [1, 2, 3].map((input) => ({ type: 'work', input, idempotencyKey: `k${input}` })),
      )
      expect(results.map((result) => result.ok && !result.task.deduplicated)).toEqual([true, true, true])
      expect((await healthy.count()).count).toBe(3)
    },
  },
  {
    name: 'submit with a coalesce key that is new',
    byOp: true,
    async play({ client, healthy, lose }) {
      lose('insert')
      const task = await client.submit('work', 1, { coalesce: { key: 'k' } })
      expect(task.coalesced).toBe(false)
      expect((await healthy.submit('work', 1, { coalesce: { key: 'k' } })).id).toBe(task.id)
      expect((await healthy.count()).count).toBe(1)
    },
  },
  {
    name: 'submit with a coalesce key that passes on',
    byOp: true,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1, { coalesce: { key: 'k' } })
      await healthy.claim(id, { workerId: 'w' })
      lose('insert')
      const task = await client.submit('work', 2, { coalesce: { key: 'k' } })
      expect([task.coalesced, task.id === id]).toEqual([false, false])
      expect((await healthy.count()).count).toBe(2)
    },
  },
  {
    name: 'submit that joins the task of a coalesce key',
    // A repeat within the same millisecond changes nothing anyway.
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1, { coalesce: { key: 'k' } })
      lose('commit', moving('amend'))
      const task = await client.submit('work', 2, { coalesce: { key: 'k', delay: '1h' } })
      expect([task.id, task.coalesced, task.input]).toEqual([id, true, 2])
      expect((await healthy.get(id)).revision, 'once').toBe(2)
    },
  },
  {
    name: 'claim by a worker',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      let runs = 0
      lose('claim')
      await client
        .worker()
        .handle('work', () => void runs++)
        .drain()
      expect(runs).toBe(1)
      const task = await healthy.get(id)
      expect([task.status, task.retryCount]).toEqual(['completed', 0])
      expect(task.history.map(({ move }) => move)).toEqual(['submit', 'claim', 'release', 'claim', 'complete'])
    },
  },
  {
    name: 'claim by id',
    byOp: true,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      lose('commit', moving('claim'))
      const lease = await client.claim(id, { workerId: 'w' })
      expect(lease.fence).toBe(1)
      await lease.complete('done')
      expect((await healthy.get(id)).attempts).toBe(1)
    },
  },
  {
    name: 'claim by id again',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      const lease = await healthy.claim(id, { workerId: 'w' })
      lose('renew')
      expect((await client.claim(id, { workerId: 'w' })).token).toBe(lease.token)
    },
  },
  {
    name: 'claimNext',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      await healthy.submit('work', 2)
      lose('claim')
      const lease = await client.claimNext({ workerId: 'w' })
      expect(lease?.task.id).toBe(id)
      expect((await healthy.count({ status: 'running' })).count).toBe(1)
    },
  },
  ...(
    [
      ['complete', 'completed', () => 'done'],
      ['fail', 'failed', () => Promise.reject(new PermanentError('no'))],
      ['reschedule', 'pending', () => Promise.reject(new RescheduleError('1h'))],
      ['time-out', 'failed', (_, ctx) => new Promise((done) => ctx.signal.addEventListener('abort', done))],
    ] as readonly [string, string, Handler][]
  ).map(
    ([move, status, handler]): Scene => ({
      name: `${move} by a worker`,
      byOp: true,
      async play({ client, healthy, lose }) {
        const { id } = await healthy.submit('work', 1, { timeout: '50ms', maxRetries: 0 })
        const ended: unknown[] = []
        const { promise: told, resolve } = Promise.withResolvers<void>()
        const onTaskEnd = (_: unknown, error: { code?: unknown } | null): void => {
          ended.push(error?.code ?? null)
          resolve()
        }
        lose('commit', moving(move))
        const worker = client.worker({ hooks: { onTaskEnd }, stopTimeout: 0 }).handle('work', handler).start()
        await told
        await worker.stop()
        expect(ended, 'it is a success').toEqual([null])
        const task = await healthy.get(id)
        expect([task.status, task.attempts]).toEqual([status, 1])
        expect(task.history.filter((entry) => entry.move === move)).toHaveLength(1)
      },
    }),
  ),
  {
    name: 'release by a worker that stops',
    byOp: true,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      const { promise: begun, resolve } = Promise.withResolvers<void>()
      const ended: unknown[] = []
      const worker = client
        .worker({ hooks: { onTaskEnd: (_, error) => void ended.push(error?.code ?? null) } })
        .handle('work', (_, ctx) => {
          resolve()
          return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
        })
        .start()
      await begun
      lose('commit', moving('release'))
      await worker.stop({ timeout: 0 })
      expect(ended, 'it is a success').toEqual([null])
      const task = await healthy.get(id)
      expect([task.status, task.retryCount, task.attempts]).toEqual(['pending', 0, 1])
    },
  },
  ...(
    [
      ['complete', (lease) => lease.complete('done')],
      ['fail', (lease) => lease.fail(new Error('no'))],
      ['reschedule', (lease) => lease.reschedule('1h')],
      ['release', (lease) => lease.release()],
    ] as readonly [string, (lease: Awaited<ReturnType<Client['claim']>>) => Promise<{ id: string }>][]
  ).map(
    ([move, act]): Scene => ({
      name: `${move} by hand`,
      byOp: true,
      async play({ client, healthy, lose }) {
        const { id } = await healthy.submit('work', 1)
        const lease = await client.claim(id, { workerId: 'w' })
        lose('commit', moving(move))
        expect((await act(lease)).id).toBe(id)
        expect((await healthy.history(id)).filter((entry) => entry.move === move)).toHaveLength(1)
      },
    }),
  ),
  {
    name: 'renew by hand',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      const lease = await client.claim(id, { workerId: 'w' })
      lose('renew')
      expect(await lease.renew({ progress: 5 })).toEqual({ cancelRequested: false })
      expect((await healthy.get(id)).progress).toBe(5)
    },
  },
  ...(
    [
      ['cancel', 'cancelled', async () => {}, (client, id) => client.cancel(id)],
      [
        'request-cancel',
        'running',
        async (client, id) => void (await client.claim(id, { workerId: 'w' })),
        (client, id) => client.cancel(id),
      ],
      [
        'retry',
        'pending',
        async (client, id) => void (await (await client.claim(id, { workerId: 'w' })).fail(new PermanentError('no'))),
        (client, id) => client.retry(id),
      ],
      [
        'retry',
        'pending',
        async (client, id) => void (await client.claim(id, { workerId: 'w' })),
        (client, id) => client.retry(id),
      ],
      [
        'replay',
        'pending',
        async (client, id) => void (await (await client.claim(id, { workerId: 'w' })).fail(new PermanentError('no'))),
        async (client, id) => only(await client.deadLetters.replay(id)),
      ],
      [
        'archive',
        'pending',
        async (client, id) => void (await (await client.claim(id, { workerId: 'w' })).fail(new PermanentError('no'))),
        async (client) => only(await client.deadLetters.replay({}, { asNew: true })),
      ],
      ['amend', 'pending', async () => {}, (client, id) => client.amend(id, { priority: 5 })],
      ['expire', 'expired', async () => {}, (client, id) => client.markExpired(id)],
      ['archive', 'archived', async (client, id) => void (await client.cancel(id)), (client, id) => client.archive(id)],
      [
        'unarchive',
        'cancelled',
        async (client, id) => void (await client.archive((await client.cancel(id)).id)),
        (client, id) => client.unarchive(id),
      ],
    ] as readonly [
      string,
      string,
      (client: Client, id: string) => Promise<void>,
      (client: Client, id: string) => Promise<{ status: string }>,
    ][]
  ).map(
    ([move, status, prepare, act], i): Scene => ({
      name: `${move} by an operator (${i + 1})`,
      // Cancel and archive are successes anyway when it is so already.
      byOp: ['retry', 'replay', 'expire', 'unarchive'].includes(move),
      async play({ client, healthy, lose }) {
        const { id } = await healthy.submit('work', 1)
        await prepare(healthy, id)
        const { revision } = await healthy.get(id)
        lose('commit', moving(move))
        expect((await act(client, id)).status).toBe(status)
        expect((await healthy.get(id)).revision, 'once').toBe(revision + 1)
      },
    }),
  ),
  {
    name: 'delete',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1)
      await healthy.cancel(id)
      lose('remove')
      await client.delete(id)
      await expect(healthy.get(id)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    },
  },
  {
    name: 'pause and resume',
    byOp: false,
    async play({ client, healthy, lose }) {
      lose('documents.put')
      await client.queue('q').pause()
      expect(await healthy.queue('q').isPaused()).toBe(true)
      lose('documents.delete')
      await client.queue('q').resume()
      expect(await healthy.queue('q').isPaused()).toBe(false)
    },
  },
  {
    name: 'taking a lapsed lease',
    byOp: false,
    async play({ client, healthy, lose }) {
      const { id } = await healthy.submit('work', 1, soon)
      await healthy.claim(id, { workerId: 'gone', leaseTtl: '100ms' })
      await expect.poll(async () => (await healthy.now()) >= (await healthy.get(id)).lease!.expiresAt).toBe(true)
      lose('commit', moving('lose-lease'))
      let runs = 0
      // Not drained: a lease is taken only after contact for its length, and until then there is nothing to run.
      const worker = client.worker().handle('work', () => void runs++)
      worker.start()
      await expect.poll(async () => (await healthy.get(id)).status, { timeout: 20_000 }).toBe('completed')
      await worker.stop()
      const task = await healthy.get(id)
      expect([runs, task.status, task.retryCount, task.attempts]).toEqual([1, 'completed', 1, 2])
    },
  },
]
