/** The store's thread. An fsync or a wait for the lock does not block the event loop. It also renews the leases. */
import { randomUUID } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import type { HoldfastError } from '../../core/errors.ts'
import { decodeWhole, type Row } from '../sql/rows.ts'
import { endThread } from '../threads/end-of-thread.ts'
import type { LeaseName } from '../threads/given-back.ts'
import { LeaseBoard } from '../threads/lease-board.ts'
import { type KeeperHost, LeaseKeeper } from '../threads/lease-keeper.ts'
import { reportTo } from '../threads/report-channel.ts'
import { Engine, type Write } from './engine.ts'
import { asHoldfastError } from './errors.ts'
import { HostClock, mono } from './file/clock.ts'
import { readAhead, readHighWater } from './file/clock-mark.ts'
import { openFile } from './file/connection.ts'
import type {
  Call,
  FromThread,
  Notice,
  PlainError,
  ReadCall,
  Reply,
  ThreadData,
  ToThread,
  WriteCall,
} from './protocol.ts'
import { Watch } from './watch.ts'
import { commitAnswer, encodeChanges } from './write/commit.ts'

const port = parentPort!
const send = (message: FromThread): void => port.postMessage(message)

const plain = ({ code, message, details }: HoldfastError): PlainError => ({ code, message, details })

const READS: ReadonlySet<Call['call']> = new Set<ReadCall['call']>([
  'now',
  'get',
  'find',
  'list',
  'count',
  'count-queues',
  'waiting-groups',
  'get-document',
  'list-documents',
  'list-detached-keys',
])

/** Sends the replies of one turn together. */
class Outbox {
  #replies: Reply[] = []

  put(reply: Reply): void {
    if (this.#replies.push(reply) === 1) queueMicrotask(() => this.flush())
  }

  flush(): void {
    const replies = this.#replies
    this.#replies = []
    if (replies.length > 0) send({ kind: 'replies', replies })
  }
}

/** The store, for a keeper that runs on this thread. */
const keeperHostOf = (engine: Engine): KeeperHost => {
  const write = <T>(ask: WriteCall): Promise<T> =>
    new Promise((done, failed) => engine.write({ ask, since: mono(), done, failed } as Write))
  return {
    renew: (renewals) => write({ call: 'renew', renewals, now: null }),
    leasedBy: (worker, op) => engine.read({ call: 'leased-by', workerId: worker, op }) as Promise<LeaseName[]>,
    tasks: {
      now: async () => ({ at: engine.now(), uncertainty: 0 }),
      get: async (ids) => {
        const rows: (Row | null)[] = []
        while (rows.length < ids.length)
          rows.push(...((await engine.read({ call: 'get', ids: ids.slice(rows.length) })) as (Row | null)[]))
        return rows.map((row) => row && decodeWhole(row))
      },
      commit: async (changes) =>
        commitAnswer(changes, await write({ call: 'commit', changes: encodeChanges(changes) })),
    },
    mono,
    after: (delay: number, tick: () => void) => {
      const timer = setTimeout(tick, delay)
      return () => clearTimeout(timer)
    },
  }
}

const serve = (engine: Engine, path: string): void => {
  const outbox = new Outbox()
  const watched = {
    log: `${path}-wal`,
    version: () => engine.dataVersion(),
    committedAt: () => engine.committedAt(),
  }
  const watch = new Watch(watched, () => send({ kind: 'wake' }))
  const keepers = new Map<number, LeaseKeeper>()

  const answer = (n: number, ask: Call): void => {
    const done = (value: unknown): void => outbox.put({ n, value })
    const failed = (error: HoldfastError): void => outbox.put({ n, error: plain(error) })
    if (READS.has(ask.call)) void engine.read(ask as ReadCall).then(done, failed)
    else engine.write({ ask: ask as WriteCall, since: mono(), done, failed })
  }

  const keep = ({ keeper, workerId, board, reports, leaseTtl, every }: Extract<Notice, { notice: 'keep' }>): void => {
    const options = { workerId, board: new LeaseBoard(board), leaseTtl, every, report: reportTo(reports) }
    keepers.set(keeper, new LeaseKeeper(options, keeperHostOf(engine)))
  }

  const notice = (message: Notice): void => {
    switch (message.notice) {
      case 'watch':
        watch.set(message.on)
        break
      case 'keep':
        keep(message)
        break
      case 'claiming':
        keepers.get(message.keeper)?.claiming(message.op, message.ticket, message.since)
        break
      case 'hold':
        keepers.get(message.keeper)?.holdPacked(message.leases)
        break
      case 'progress':
        keepers.get(message.keeper)?.progress(message.slot, message.progress)
        break
      case 'leave':
        keepers.get(message.keeper)?.close()
        keepers.delete(message.keeper)
        break
      case 'close':
        watch.set(false)
        for (const keeper of keepers.values()) keeper.close()
        engine.close()
        // Flush before the port closes: a write that succeeded must not be reported as refused.
        outbox.flush()
        endThread(port)
    }
  }

  port.on('message', (message: ToThread) => {
    if ('ask' in message) answer(message.n, message.ask)
    else notice(message)
  })
}

const { path, create, identity } = workerData as ThreadData
try {
  const opened = openFile(path, { create, identity: identity || randomUUID() })
  const ahead = readAhead(opened.db, Date.now())
  const engine = new Engine(opened.db, path, new HostClock(readHighWater(opened.db).at))
  serve(engine, path)
  send({ kind: 'opened', identity: opened.identity, created: opened.created, ahead })
} catch (error) {
  send({ kind: 'refused', error: plain(asHoldfastError(error, `sqlite:${path}`)) })
  endThread(port)
}
