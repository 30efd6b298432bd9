/** Reads the logs of all witnesses once. Keeps the lines about processes, and passes the lines about tasks on. */
import type { Ledger } from './ledger.ts'
import { readWitness, type ServesLine, type WitnessLine, witnessFiles } from './witness-lines.ts'

/** What the logs say about the system as a whole. */
export interface Logs {
  readonly files: number
  readonly lines: number
  /** The number of unfinished lines. */
  readonly cut: number
  readonly runs: number
  /** How many tasks calls with an unclear outcome may have made. */
  readonly unclear: number
  readonly workers: ReadonlySet<string>
  readonly serves: ReadonlyMap<string, ServesLine>
  readonly downs: ReadonlyMap<string, readonly number[]>
}

interface OpenCall {
  readonly process: string
  readonly at: number
  readonly tasks: number
}

const UNCLEAR = 'STORE_UNAVAILABLE'

export class LogReader {
  readonly #ledger: Ledger
  readonly #deadline: number
  readonly #workers = new Set<string>()
  readonly #serves = new Map<string, ServesLine>()
  readonly #downs = new Map<string, number[]>()
  /** By process and call. */
  readonly #open = new Map<string, OpenCall>()
  readonly #lastSeen = new Map<string, number>()
  #files = 0
  #lines = 0
  #cut = 0
  #runs = 0
  #unclear = 0

  /** `deadline`: within how many milliseconds a call must end. */
  constructor(ledger: Ledger, deadline: number) {
    this.#ledger = ledger
    this.#deadline = deadline
  }

  async *read(paths: readonly string[]): AsyncGenerator<WitnessLine, void, undefined> {
    for (const file of witnessFiles(paths)) {
      this.#files++
      for await (const line of readWitness(file)) {
        this.#lines++
        if (line === 'cut') this.#cut++
        else {
          this.#note(line)
          yield line
        }
      }
    }
  }

  #note(line: WitnessLine): void {
    this.#lastSeen.set(line.process, Math.max(this.#lastSeen.get(line.process) ?? 0, line.at))
    switch (line.what) {
      case 'start':
        this.#runs++
        this.#workers.add(line.worker)
        return
      case 'serves':
        this.#serves.set(line.worker, line)
        return
      case 'down':
        this.#downs.set(line.dead, [...(this.#downs.get(line.dead) ?? []), line.at])
        return
      case 'submitting':
        this.#ledger.check('I15')
        this.#open.set(`${line.process} ${line.call}`, { ...line, tasks: line.tasks ?? 1 })
        return
      case 'submitted':
        this.#ended(line)
        return
      case 'refused':
        this.#ended(line)
        if (line.code === UNCLEAR || line.code === null) this.#unclear += line.tasks ?? 1
        if (line.code === null) this.#ledger.violate('I15', null, `${line.process}: submit was rejected without a code`)
        return
      case 'unhandled':
        this.#ledger.violate('I15', null, `${line.process}: '${line.message}' was not handled`)
    }
  }

  #ended({ call, process, at }: { readonly call?: string; readonly process: string; readonly at: number }): void {
    const open = this.#open.get(`${process} ${call}`)
    if (open === undefined) return
    this.#open.delete(`${process} ${call}`)
    if (at - open.at > this.#deadline)
      this.#ledger.violate(
        'I15',
        null,
        `${process}: submit took ${at - open.at} ms; at most ${this.#deadline} are allowed`,
      )
  }

  /** Calls that have not ended have an unclear outcome. If their process lives, they must end in time. */
  end(readAt: number): Logs {
    for (const { process, at, tasks } of this.#open.values()) {
      this.#unclear += tasks
      const isLate = (this.#lastSeen.get(process) ?? 0) - at > this.#deadline && readAt - at > this.#deadline
      if (isLate) this.#ledger.violate('I15', null, `${process}: submit has not ended ${readAt - at} ms later`)
    }
    return {
      files: this.#files,
      lines: this.#lines,
      cut: this.#cut,
      runs: this.#runs,
      unclear: this.#unclear,
      workers: this.#workers,
      serves: this.#serves,
      downs: this.#downs,
    }
  }
}
