/** All planted bugs. `npm run mutants` plants one after the other and runs the tests that should turn red. */
import { AUDITS } from './audits.ts'
import { CHECKLIST } from './checklist.ts'
import { CORE } from './core.ts'
import { HTTP } from './http.ts'
import type { Mutant } from './mutant.ts'
import { RUNTIME } from './runtime.ts'
import { SERVERS } from './servers.ts'
import { STEP_MUTANTS } from './steps.ts'
import { STORES } from './stores.ts'

export const MUTANTS: readonly Mutant[] = [
  ...CORE,
  ...RUNTIME,
  ...STEP_MUTANTS,
  ...STORES,
  ...SERVERS,
  ...HTTP,
  ...CHECKLIST,
  ...AUDITS,
]
