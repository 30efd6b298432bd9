/** Shared by the bulk verbs: the selection, a plan before anything happens, and confirmation by a question or --yes. */
import { createInterface } from 'node:readline/promises'
import { type DeadQuery, HoldfastError, type Task } from '../../../index.ts'
import { EXIT } from '../../output/exit-codes.ts'
import { err, out, outJson, paint, printable, shorten } from '../../output/render.ts'
import { tag } from '../../program/input.ts'
import type { GlobalOptions } from '../../program/session.ts'

export interface BulkOptions extends GlobalOptions {
  readonly type?: string
  readonly queue?: string
  readonly taskGroup?: string
  readonly tag?: string
  readonly yes?: boolean
  readonly dryRun?: boolean
}

export interface Filter {
  readonly type?: string
  readonly queue?: string
  readonly taskGroup?: string
  readonly tag?: { readonly name: string; readonly value: string }
}

export const filterOf = ({ type, queue, taskGroup, tag: label }: BulkOptions): Filter => ({
  ...(type === undefined ? null : { type }),
  ...(queue === undefined ? null : { queue }),
  ...(taskGroup === undefined ? null : { taskGroup }),
  ...(label === undefined ? null : { tag: tag(label) }),
})

export interface DeadOptions extends BulkOptions {
  readonly group?: string
  readonly all?: boolean
}

/** The dead letters that a verb acts on: ids, or a query. */
export const deadOf = (ids: readonly string[], options: DeadOptions): readonly string[] | DeadQuery => {
  const query: DeadQuery = { ...filterOf(options), ...(options.group === undefined ? null : { group: options.group }) }
  const isChosen = options.all === true || Object.keys(query).length > 0
  mustChoose(ids, isChosen, '--group, --task-group, --type, --queue, --tag or --all')
  return ids.length > 0 ? ids : query
}

/** Requires either ids or filters, and not both. */
export const mustChoose = (ids: readonly string[], isChosen: boolean, words: string): void => {
  if (ids.length > 0 !== isChosen) return
  const why = ids.length > 0 ? `give ids or ${words}, not both` : `name the tasks: ids, or ${words}`
  throw new HoldfastError('INVALID_OPTION', why, { field: 'ID' })
}

export interface Plan {
  /** `replay`, `cancel`. */
  readonly verb: string
  readonly count: number
  /** There may be more. */
  readonly capped: boolean
  readonly sample: readonly Task[]
}

const SHOWN = 5

export const tasks = (count: number): string => (count === 1 ? '1 task' : `${count} tasks`)

/** Returns true to continue. The plan goes to standard error, so that results can be piped. */
export const agreed = async (
  plan: Plan,
  { yes = false, dryRun = false, json = false }: BulkOptions,
): Promise<boolean> => {
  const many = `${tasks(plan.count)}${plan.capped ? ' or more' : ''}`
  if (dryRun) {
    if (json) outJson({ matched: plan.count, capped: plan.capped, sample: plan.sample.map(withoutHistory) })
    else for (const line of planLines(plan, many)) out(line)
    return false
  }
  if (plan.count === 0) {
    if (!json) err('no tasks')
    return false
  }
  if (yes) return true
  if (!json) for (const line of planLines(plan, many)) err(line)
  if (json || !process.stdin.isTTY || !process.stderr.isTTY) {
    throw new HoldfastError('INVALID_OPTION', `--yes is required to ${plan.verb} ${many} without confirmation`, {
      field: '--yes',
    })
  }
  const questions = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await questions.question(`${plan.verb} ${many}? [y/N] `)
    if (/^y(es)?$/i.test(answer.trim())) return true
    err('nothing was done')
    return false
  } finally {
    questions.close()
  }
}

const planLines = ({ verb, count, sample }: Plan, many: string): string[] => [
  `would ${verb} ${many}${count === 0 ? '' : ':'}`,
  ...sample.slice(0, SHOWN).map((task) => `  ${task.id}  ${task.type}  ${task.queue}  ${task.status}${errorOf(task)}`),
  ...(count > SHOWN ? [`  … and ${count - Math.min(SHOWN, sample.length)} more`] : []),
]

const errorOf = ({ lastError }: Task): string =>
  lastError === null ? '' : `  ${shorten(printable(`${lastError.name}: ${lastError.message}`), 60)}`

/** Lists have no histories: an absent field is better than an empty one. */
export const withoutHistory = (task: Task): Record<string, unknown> => {
  const { history: _, ...fields } = task.toJSON()
  return fields
}

const WIDTH = 24

/** A progress bar on standard error if it is a terminal. */
export const progressBar = (total: number): { at(done: number): void; end(): void } => {
  if (!process.stderr.isTTY) return { at: () => {}, end: () => {} }
  return {
    at(done) {
      const full = Math.round((WIDTH * Math.min(done, total)) / Math.max(1, total))
      const bar = paint('cyan', '█'.repeat(full), process.stderr) + '░'.repeat(WIDTH - full)
      process.stderr.write(`\r${bar} ${done}/${total}`)
    },
    end: () => void process.stderr.write('\r\u001b[K'),
  }
}

export interface Watched {
  readonly signal: AbortSignal
  readonly onProgress: (done: number) => void
}

/** SIGINT stops it between two batches: it reports what is done, and a repeat continues from there. */
export const withProgress = async <T>(total: number, work: (watched: Watched) => Promise<T>): Promise<T> => {
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  process.once('SIGINT', onSignal)
  const bar = progressBar(total)
  try {
    return await work({ signal: stop.signal, onProgress: bar.at })
  } finally {
    bar.end()
    process.off('SIGINT', onSignal)
  }
}

/** Why a bulk operation stopped early. */
export const STOPPED = {
  canary: 'stopped: the canaries did not all complete; the others were left alone',
  aborted: 'stopped as requested; run the same command to continue',
  store: 'stopped: lost contact with the store; run the same command to continue',
} as const

export const STOPPED_EXIT = { canary: EXIT.refused, aborted: EXIT.interrupted, store: EXIT.store } as const
