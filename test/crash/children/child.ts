/** What every child process begins with: its plan, its voice, its store. */
import { connect } from '../../../src/connect.ts'
import type { Client } from '../../../src/runtime/client.ts'
import { silentLogger } from '../../../src/runtime/telemetry/logger.ts'
import type { Store } from '../../../src/store/store.ts'
import { openAt } from '../address.ts'
import { type Plant, planted } from '../planted.ts'

export const planOf = <Plan>(): Plan => JSON.parse(process.argv[2]!) as Plan

/** A line that the test can wait for. */
export const say = (what: string, facts: Record<string, unknown> = {}): void =>
  void process.stdout.write(`${JSON.stringify({ say: what, ...facts })}\n`)

/** The event loop stands still, as while a handler computes; without the heat, so that tests beside it have the processor. */
export const standStill = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

export const open = async (
  file: string,
  plant: Plant = 'none',
  wrap: (store: Store) => Store = (store) => store,
): Promise<Client> => connect(wrap(planted(await openAt(file), plant)), { logger: silentLogger })
