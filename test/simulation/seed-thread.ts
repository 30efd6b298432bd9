/** A thread that runs seeds one after another. */
import { parentPort, workerData } from 'node:worker_threads'
import { compiled } from './bundle.ts'
import { type Order, type Outcome, simulate } from './simulation.ts'

export type Report = { readonly order: Order } & ({ readonly outcome: Outcome } | { readonly broken: string })

export interface ProgramText {
  readonly text: string
  /** See `compiled`. */
  readonly isIsolated?: boolean
}

const { text, isIsolated } = workerData as ProgramText
const program = compiled(text, isIsolated)

parentPort!.on('message', async (order: Order) => {
  const report: Report = await simulate(program, order).then(
    (outcome) => ({ order, outcome }),
    (error: unknown) => ({ order, broken: error instanceof Error ? error.stack! : String(error) }),
  )
  parentPort!.postMessage(report)
})
