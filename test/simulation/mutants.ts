/** Bugs that the simulation must notice: some of the table of test/mutants, and some that only many processes and faults can show. */
import { CORE } from '../mutants/core.ts'
import type { Mutant } from '../mutants/mutant.ts'
import { RUNTIME } from '../mutants/runtime.ts'
import { STORES } from '../mutants/stores.ts'
import { OWN } from './own-mutants.ts'
import type { Profile } from './settings.ts'

/** The simulation that runs the code of this bug. */
export const profileOf = ({ file }: Mutant): Profile => {
  if (file.startsWith('store/nats/')) return 'nats'
  if (file.includes('/transfer/')) return 'move'
  return file.startsWith('store/s3/') || file.startsWith('store/kv/') ? 's3' : 'transactional'
}

/** By what they break. */
const SHARED: readonly string[] = ['one retry too many', 'a release costs a retry']

export const SIMULATED: readonly Mutant[] = [
  ...[...CORE, ...RUNTIME, ...STORES].filter(({ breaks }) => SHARED.includes(breaks)),
  ...OWN,
]
