/** The store's own thread: an fsync or a wait for the lock stops nobody else. It also renews the leases. */
import { randomUUID } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import type { HoldfastError } from '../../core/errors.ts'
import { LeaseBoard } from '../lease-board.ts'
import { LeaseKeeper } from '../lease-keeper.ts'
import type { Renewed } from '../store.ts'
import { HostClock, mono } from './clock.ts'
import { openFile } from './connection.ts'
import { Engine, type Write } from './engine.ts'
import { asHoldfastError } from './errors.ts'
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
import { readMeta } from './schema.ts'
import { Watch } from './watch.ts'

const port = parentPort!
const send = (message: FromThread): void => port.postMessage(message)

const plain = ({ code, message, details }: HoldfastError): PlainError => ({ code, message, details })

const READS: ReadonlySet<Call['call']> = new Set<ReadCall['call']>([
  'now',
  'get',
  'find',
  'list',
  'count',
  'glance-list',
  'glance-count',
  'glance-queues',
  'get-document',
  'list-documents',
  'list-orphans',
])

/** Replies of one turn travel together. */
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

  const keep = ({ keeper, board, leaseTtl, every }: Extract<Notice, { notice: 'keep' }>): void => {
    const host = {
      renew: (renewals: Extract<WriteCall, { call: 'renew' }>['renewals']) =>
        new Promise<readonly Renewed[]>((done, failed) =>
          engine.write({ ask: { call: 'renew', renewals, now: null }, since: mono(), done, failed } as Write),
        ),
      mono,
      after: (delay: number, tick: () => void) => {
        const timer = setTimeout(tick, delay)
        return () => clearTimeout(timer)
      },
    }
    const report = (results: Extract<FromThread, { kind: 'report' }>['results'], renewedAt: number): void =>
      send({ kind: 'report', keeper, results, renewedAt })
    keepers.set(keeper, new LeaseKeeper({ board: new LeaseBoard(board), leaseTtl, every, report }, host))
  }

  const notice = (message: Notice): void => {
    switch (message.notice) {
      case 'watch':
        watch.set(message.on)
        break
      case 'keep':
        keep(message)
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
        // Before the port closes: what was written must not be reported as refused.
        outbox.flush()
        port.close()
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
  const engine = new Engine(opened.db, path, new HostClock(Number(readMeta(opened.db, 'high_water') ?? 0)))
  serve(engine, path)
  send({ kind: 'opened', identity: opened.identity, created: opened.created })
} catch (error) {
  send({ kind: 'refused', error: plain(asHoldfastError(error, `sqlite:${path}`)) })
  port.close()
}
