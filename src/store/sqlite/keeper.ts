/** The event loop's side of a keeper that runs on the store's thread. */
import type { HeldLease, Keeper, KeeperOptions } from '../store.ts'
import { packLeases, SINCE_LONG } from '../threads/packed-leases.ts'
import { type Reports, receiveReports } from '../threads/report-channel.ts'
import type { ThreadLink } from './thread-link.ts'

export class RestartableKeeper implements Keeper {
  readonly #link: ThreadLink
  readonly #options: KeeperOptions
  readonly #n: number
  #reports: Reports

  constructor(link: ThreadLink, options: KeeperOptions) {
    this.#link = link
    this.#options = options
    this.#n = link.nextNumber()
    this.#reports = this.#start()
  }

  #start(): Reports {
    const { workerId, board, leaseTtl, every, report } = this.#options
    const reports = receiveReports(report)
    const { port } = reports
    const told = { keeper: this.#n, workerId, board: board.memory, reports: port, leaseTtl, every }
    this.#link.tell({ notice: 'keep', ...told }, [port])
    return reports
  }

  /** Sends all held leases to a new thread. */
  restart(): void {
    this.#reports.close()
    this.#reports = this.#start()
    this.hold(this.#options.held(), SINCE_LONG)
  }

  claiming(op: string, ticket: number, since: number): void {
    this.#link.tell({ notice: 'claiming', keeper: this.#n, op, ticket, since })
  }

  hold(leases: readonly HeldLease[], since: number): void {
    this.#link.tell({ notice: 'hold', keeper: this.#n, leases: packLeases(leases, since) })
  }

  progress(slot: number, progress: string): void {
    this.#link.tell({ notice: 'progress', keeper: this.#n, slot, progress })
  }

  reportNow(): void {
    this.#reports.reportNow()
  }

  close(): void {
    this.#reports.close()
    this.#link.tell({ notice: 'leave', keeper: this.#n })
  }
}
