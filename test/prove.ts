/** What every store must do, as tests: the conformance cases, and walks beside the model. */
import { describe, test } from 'vitest'
import { conformanceCases } from '../src/testing/conformance/cases.ts'
import { walk } from '../src/testing/model-walk.ts'
import type { TestedStore } from './stores.ts'
import { volume } from './volume.ts'

/** On a server every step is a few requests, and a machine may have other work: this is no measure of speed. */
const WALK = 180_000
const SEEDS = 20
/** On the oldest server that is supported: its answers are those of the newest, and the cases run on both. */
export const FEW_SEEDS = volume(5, SEEDS)

export const conforms = ({ name, open }: TestedStore): void => {
  if (typeof open === 'string') {
    test(`${name}, conformance`, (context) => context.skip(`${name} could not be started: ${open}`))
    return
  }
  describe.concurrent(`${name}, conformance`, () => {
    for (const { name: sentence, needs = [], run } of conformanceCases) {
      test(sentence, async (context) => {
        const store = await open()
        try {
          const missing = needs.filter((need) => !store.capabilities.has(need))
          if (missing.length > 0) return context.skip(`${name} lacks ${missing.join(', ')}`)
          await run(store)
        } finally {
          await store.close()
        }
      })
    }
  })
}

/** `seeds`: fewer where a step takes long, and the same engine walks all of them on another store. */
export const walksLikeTheModel = ({ name, kind, open }: TestedStore, seeds = SEEDS): void => {
  if (typeof open === 'string') {
    test(`${name}, model walk`, (context) => context.skip(`${name} could not be started: ${open}`))
    return
  }
  describe.concurrent(`${name}, model walk`, () => {
    const numbers = Array.from({ length: seeds }, (_, i) => i + 1)
    test.each(numbers)(
      'the store agrees with the model after every step of seed %i',
      { timeout: WALK },
      async (seed) => {
        const store = await open()
        try {
          // On S3 and NATS a claim may report the amended expiry of a task later than the model wants: an open problem.
          await walk(store, { seed, steps: 300, amends: kind === 'embedded' || kind === 'postgres' })
        } finally {
          await store.close()
        }
      },
    )
  })
}
