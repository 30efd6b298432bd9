/** `holdfast move FROM TO`: moves everything to another store. It may be killed and run again. */
import { HoldfastError, type MoveProgress, type MoveReport } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { progressBar, tasks } from './shared/bulk.ts'

interface Options extends GlobalOptions {
  readonly live?: boolean
}

export const run = async ([from, to]: readonly string[], options: Options): Promise<number> => {
  if (options.url !== undefined)
    throw new HoldfastError('INVALID_OPTION', '--url is not allowed here: name both stores, FROM and TO', {
      field: '--url',
    })
  return withClient({ ...options, url: from! }, { create: false }, (source) =>
    withClient({ ...options, url: to! }, { create: true }, async (target) => {
      const stop = new AbortController()
      const onSignal = (): void => stop.abort()
      process.once('SIGINT', onSignal)
      process.once('SIGTERM', onSignal)
      const progress = showProgress(options.json ?? false)
      try {
        const report = await source.moveTo(target, {
          live: options.live ?? false,
          signal: stop.signal,
          onProgress: progress.at,
        })
        progress.end()
        return printReport(report, source.address, target.address, options.json ?? false)
      } finally {
        progress.end()
        process.off('SIGINT', onSignal)
        process.off('SIGTERM', onSignal)
      }
    }),
  )
}

/** A progress bar whose total grows, and one line when the move starts to wait. */
const showProgress = (json: boolean): { at(progress: MoveProgress): void; end(): void } => {
  let total = -1
  let bar = progressBar(0)
  let hasToldWait = false
  return {
    at({ moved, total: now, waiting }) {
      if (now !== total) {
        total = now
        bar = progressBar(total)
      }
      if (waiting > 0 && moved + waiting >= total && !hasToldWait && !json) {
        hasToldWait = true
        bar.end()
        err(`waiting for ${tasks(waiting)} that ${waiting === 1 ? 'runs' : 'run'} in the old store`)
      }
      bar.at(moved)
    },
    end: () => bar.end(),
  }
}

const printReport = (report: MoveReport, from: string, to: string, json: boolean): number => {
  const { moved, deduplicated, withoutKey, keys, schedules, schedulesKeptOut, conflicts, stopped } = report
  if (json) outJson({ from, to, ...report })
  else {
    out(`moved ${tasks(moved)} from ${from} to ${to}`)
    if (schedules > 0) out(`moved ${schedules === 1 ? '1 schedule' : `${schedules} schedules`}`)
    if (keys > 0) out(`moved ${keys === 1 ? '1 idempotency key' : `${keys} idempotency keys`} that outlived the task`)
    if (deduplicated > 0) out(`left out ${tasks(deduplicated)}: the same work already exists under the same key`)
    if (withoutKey > 0) err(`moved ${tasks(withoutKey)} without the idempotency key, which already names other work`)
    for (const id of schedulesKeptOut) err(`schedule ${id} already exists in the new store and was kept`)
    for (const id of conflicts) err(`task ${id} was not moved: another task has this id`)
    if (stopped !== null) err(`stopped as requested: ${to} stays paused; run the same command to continue`)
  }
  if (stopped !== null) return EXIT.interrupted
  return conflicts.length > 0 ? EXIT.refused : EXIT.ok
}
