/** `holdfast signal ID NAME`: sends a signal to a task. */
import type { Task } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, printable } from '../output/render.ts'
import { inputValue } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly input?: string
  readonly signalId?: string
}

export const run = async ([id, name]: readonly string[], options: Options): Promise<number> => {
  const { input, signalId } = options
  const value = input === undefined ? undefined : await inputValue(input)
  return withClient(options, { create: false }, async (client) => {
    const task = await client.signal(id!, name!, value, signalId === undefined ? {} : { signalId })
    if (options.json) outJson(task)
    else out(`${task.id} ${printable(told(task, await client.now()))}`)
    return EXIT.ok
  })
}

const told = (task: Task, now: number): string => {
  const view = task.viewAt(Math.max(now, task.updatedAt))
  const status = view === task.status ? view : `${task.status} (${view})`
  const { signal, signals = [] } = (view === 'parked' && task.parked) || {}
  // The name that was sent may be misspelt.
  const awaited = [...new Set(signal === undefined ? signals : [signal, ...signals])]
  const waits = awaited.length === 0 ? '' : `, waits for: ${awaited.join(', ')}`
  return `${status}, untaken signals: ${task.signals.length}${waits}`
}
