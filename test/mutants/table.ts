/** All planted bugs. `npm run mutants` plants one after the other and runs the tests that should turn red. */
import { CHECKLIST } from './checklist.ts'
import { CORE } from './core.ts'
import { HTTP } from './http.ts'
import type { Mutant } from './mutant.ts'
import { RUNTIME } from './runtime.ts'
import { STORES } from './stores.ts'

export const MUTANTS: readonly Mutant[] = [...CORE, ...RUNTIME, ...STORES, ...HTTP, ...CHECKLIST]
