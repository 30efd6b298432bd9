/** `holdfast why ID`: one sentence, then the facts that it rests on. */
import { EXIT } from '../exit-codes.ts'
import { historyLine } from '../history-line.ts'
import { reasonOf } from '../reason.ts'
import { out, outJson, paint } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

/** Enough to tell "a few" from "a flood", cheap on every store. */
const CAP = 10_000

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.get(id!)
    const { queue, status } = task
    const [now, queuePaused, ready, running] = await Promise.all([
      client.now(),
      client.queue(queue).isPaused(),
      client.count({ queue, status: 'ready' }, { cap: CAP }),
      client.count({ queue, status: 'running' }, { cap: CAP }),
    ])
    const { reason, sentence } = reasonOf(task, { now, queuePaused })
    if (options.json) {
      const facts = { queuePaused, queueReady: ready.count, queueRunning: running.count }
      outJson({ id: task.id, status, view: task.viewAt(now), reason, sentence, ...facts, task })
      return EXIT.ok
    }
    const many = ({ count, capped }: { count: number; capped: boolean }): string =>
      `${count}${capped ? ' or more' : ''}`
    out(paint('bold', sentence))
    out(`  status: ${status} (${task.viewAt(now)}), attempts: ${task.attempts}, revision: ${task.revision}`)
    out(`  queue ${queue}: ${queuePaused ? 'paused' : 'not paused'}, ${many(ready)} ready, ${many(running)} running`)
    const last = task.history.at(-1)
    if (last !== undefined) out(`  last move: ${historyLine(last)}`)
    return EXIT.ok
  })
