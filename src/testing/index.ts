/** Tools to test handlers, to verify a store, and to verify what happened in one. Independent of any test runner. */
export { type CheckedTask, checkHistory, type Evidence, type Start } from './check-history.ts'
export { type Case, conformanceCases } from './conformance/cases.ts'
export {
  type CrashFault,
  type CrashFinding,
  type CrashOptions,
  type CrashReport,
  crashEverywhere,
  type Effect,
  type HandlerUnderTest,
} from './crash-everywhere.ts'
export { type DrainOptions, drain, type Handlers } from './drain.ts'
export { FakeClock, type FakeClockOptions } from './fake-clock.ts'
export { type Fate, type LossPlan, lossy, onceFor, type StoreCall } from './lossy-store.ts'
export { type Walked, type WalkOptions, walk } from './model-walk.ts'
export { INVARIANTS, type Invariant } from './verify/invariants.ts'
export type { Violation } from './verify/ledger.ts'
export { type Verdict, type Verification, type VerifyOptions, verify } from './verify/verify.ts'
export { openWitness, type Witness } from './verify/witness.ts'
export type { WitnessLine } from './verify/witness-lines.ts'
