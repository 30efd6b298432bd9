/** `holdfast why ID`: one sentence, then the facts behind it. */
import { type Count, type SkippedSlot, skippedBecause } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { historyLine } from '../output/history-line.ts'
import { out, outJson, paint, printable } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const { task, reason, sentence, now, queuePaused, queueReady, queueRunning, workers, skippedSlot } =
      await client.why(id!)
    const { status, queue } = task
    const view = task.viewAt(now)
    if (options.json) {
      const facts = { queuePaused, queueReady: queueReady.count, queueRunning: queueRunning.count }
      const shown = {
        reason,
        sentence: printable(sentence),
        ...facts,
        workers: workers.map((worker) => worker.id),
        skippedSlot: shownSlot(skippedSlot),
      }
      outJson({ id: task.id, status, view, ...shown, task })
      return EXIT.ok
    }
    out(paint('bold', printable(sentence)))
    out(
      `  status: ${status}${view === status ? '' : ` (${view})`}, attempts: ${task.attempts}, revision: ${task.revision}`,
    )
    out(
      `  queue ${queue}: ${queuePaused ? 'paused' : 'not paused'}, ${many(queueReady)} ready, ${many(queueRunning)} running`,
    )
    out(`  live workers for it: ${workers.length}`)
    if (skippedSlot !== null) out(`  schedule ${task.scheduleId}: ${skippedBecause(skippedSlot, now, null)}`)
    const last = task.history.at(-1)
    if (last !== undefined) out(`  last move: ${historyLine(last)}`)
    return EXIT.ok
  })

const shownSlot = (skipped: SkippedSlot | null): Record<string, unknown> | null =>
  skipped && { ...skipped, slot: new Date(skipped.slot).toISOString() }

const many = ({ count, capped }: Count): string => `${count}${capped ? ' or more' : ''}`
