/** Tools to test handlers, and to verify a store. Independent of any test runner. */
export { type CheckedTask, checkHistory, type Evidence, type Start } from './check-history.ts'
export { type Case, conformanceCases } from './conformance/cases.ts'
export { type DrainOptions, drain, type Handlers } from './drain.ts'
export { FakeClock, type FakeClockOptions } from './fake-clock.ts'
export { type Fate, type LossPlan, lossy, onceFor, type StoreCall } from './lossy-store.ts'
export { type Walked, type WalkOptions, walk } from './model-walk.ts'
