/** Reads what strace saw: was the log on disk before the caller was told so? */

export interface Audit {
  readonly acks: number
  /** Completed fsync or fdatasync calls on the -wal file. */
  readonly syncs: number
  /** Acks without a write to the -wal and a completed sync of it after that write, since the ack before. */
  readonly early: readonly number[]
}

/** The options of strace that give the lines to read. */
export const STRACE = ['strace', '-f', '-y', '-qq', '-s', '24', '-e', 'trace=fsync,fdatasync,pwrite64,pwritev,write']

const CALL = /^(\d+)\s+(\w+)\((\d+)<([^>]*)>(?:, "((?:[^"\\]|\\.)*)")?/
const RESUMED = /^(\d+)\s+<\.\.\. (\w+) resumed>/

interface Call {
  readonly name: string
  readonly path: string
  readonly text: string
}

export const auditTrace = (trace: string): Audit => {
  const pending = new Map<string, Call>()
  const early: number[] = []
  let syncs = 0
  let written = false
  let isSafe = false
  const finished = ({ name, path }: Call): void => {
    if (!path.endsWith('-wal')) return
    if (name.startsWith('pwrite')) {
      written = true
      isSafe = false
    } else if (name === 'fsync' || name === 'fdatasync') {
      syncs++
      isSafe = written
    }
  }
  // An ack counts from the moment at which its write begins.
  const begun = ({ name, text }: Call): void => {
    const ack = name === 'write' ? /^ack (\d+)\\n$/.exec(text) : null
    if (ack === null) return
    acks++
    if (!isSafe) early.push(Number(ack[1]))
    written = isSafe = false
  }
  let acks = 0
  for (const line of trace.split('\n')) {
    const resumed = RESUMED.exec(line)
    if (resumed) {
      const call = pending.get(resumed[1]!)
      if (call) finished(call)
      pending.delete(resumed[1]!)
      continue
    }
    const [, pid, name, , path, text = ''] = CALL.exec(line) ?? []
    if (pid === undefined) continue
    const call = { name: name!, path: path!, text }
    begun(call)
    if (line.endsWith('<unfinished ...>')) pending.set(pid, call)
    else finished(call)
  }
  return { acks, syncs, early }
}
