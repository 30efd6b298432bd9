/** `holdfast import FILE`: imports a file that export wrote. */
import { createReadStream, createWriteStream } from 'node:fs'
import { access, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { HoldfastError, type ImportReport } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { progressBar, tasks } from './shared/bulk.ts'

export const run = async ([file]: readonly string[], options: GlobalOptions): Promise<number> => {
  if (file !== '-') return importFile(file!, options)
  // The import reads twice, which a pipe does not allow, so standard input goes to a file first.
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-import-'))
  try {
    const path = join(folder, 'lines')
    await pipeline(process.stdin, createWriteStream(path))
    return await importFile(path, options)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const importFile = async (path: string, options: GlobalOptions): Promise<number> => {
  await access(path).catch((error: Error) => {
    throw new HoldfastError('INVALID_OPTION', `FILE: cannot read '${path}': ${error.message}`, { field: 'FILE' })
  })
  return withClient(options, { create: true }, async (client) => {
    const stop = new AbortController()
    const onSignal = (): void => stop.abort()
    process.once('SIGINT', onSignal)
    const bars: ReturnType<typeof progressBar>[] = []
    const lines = () => createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
    const onProgress = (done: number, total: number): void => {
      bars[0] ??= progressBar(total)
      bars[0].at(done)
    }
    try {
      const report = await client.import(lines, { signal: stop.signal, onProgress })
      bars[0]?.end()
      return printReport(report, options.json ?? false)
    } finally {
      process.off('SIGINT', onSignal)
    }
  })
}

const printReport = (report: ImportReport, json: boolean): number => {
  const { there, wereRunning, deduplicated, withoutKey, keys, pauses, schedules, stopped } = report
  if (json) outJson(report)
  else {
    out(`imported ${tasks(report.tasks)}${there > 0 ? `; ${tasks(there)} of the file already existed` : ''}`)
    if (wereRunning > 0)
      out(
        `${tasks(wereRunning)} of the file ${wereRunning === 1 ? 'was running and is' : 'were running and are'} pending now`,
      )
    const rest = [
      schedules > 0 && `schedules: ${schedules}`,
      pauses > 0 && `pauses: ${pauses}`,
      keys > 0 && `idempotency keys that outlived the task: ${keys}`,
    ].filter((part) => part !== false)
    if (rest.length > 0) out(rest.join(', '))
    if (deduplicated > 0) out(`left out ${tasks(deduplicated)}: the same work already exists under the same key`)
    if (withoutKey > 0) err(`imported ${tasks(withoutKey)} without the idempotency key, which already names other work`)
    if (stopped !== null) err('stopped as requested; import the same file again to continue')
  }
  return stopped === null ? EXIT.ok : EXIT.interrupted
}
