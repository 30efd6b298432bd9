import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTask } from '../../src/index.ts'
import { crashEverywhere, type HandlerUnderTest } from '../../src/testing/index.ts'

type Order = HandlerUnderTest<unknown, unknown, unknown>

/** Charges, sleeps, waits for an approval, and ships; both effects have keys. */
const safe: Order = (effect) => async (_, ctx) => {
  await ctx.step('charge', ({ key }) => effect('charge', key))
  await ctx.sleep('cool down', '1h')
  const approval = (await ctx.waitFor('approved', { timeout: '7d' })) as { ok: boolean }
  if (!approval.ok) return 'refused'
  await ctx.step('ship', ({ key }) => effect('ship', key))
  return 'shipped'
}
const signals = { approved: { ok: true } }

describe('crashEverywhere', () => {
  it('finds nothing in a handler whose effects have keys', async () => {
    const report = await crashEverywhere('order', safe, { total: 3 }, { signals })
    expect(report).toMatchObject({ calls: 9, scenarios: 45, findings: [] })
  })

  it('finds an effect of a step without a key', async () => {
    const careless: Order = (effect) => async (_, ctx) => {
      await ctx.step('charge', () => effect('charge'))
      await ctx.step('ship', ({ key }) => effect('ship', key))
    }
    const { findings } = await crashEverywhere('order', careless, 1)
    expect(findings).toContainEqual({
      fault: 'crash before its write',
      at: "step 'charge'",
      problem: "effect 'charge' happened 2 times without a key, not 1",
    })
    expect(findings.every(({ problem }) => problem.includes("'charge'"))).toBe(true)
  })

  it('finds an effect between two steps, which every run repeats', async () => {
    const loose: Order = (effect) => async (_, ctx) => {
      await ctx.step('first', () => 1)
      effect('mail')
      await ctx.step('second', () => 2)
    }
    const { findings } = await crashEverywhere('order', loose, 1)
    expect(new Set(findings.map(({ fault }) => fault))).toEqual(
      new Set(['crash before its write', 'crash after', 'duplicate delivery', 'stolen lease']),
    )
  })

  it('finds a key that differs from run to run', async () => {
    const fresh: Order = (effect) => async (_, ctx) => {
      await ctx.step('charge', () => effect('charge', `attempt-${ctx.attempt}`))
    }
    expect((await crashEverywhere('order', fresh, 1)).findings).not.toEqual([])
  })

  it('finds a handler that ends otherwise when it is run again', async () => {
    let runs = 0
    const once: Order = (effect) => async (_, ctx) => {
      await ctx.step('charge', ({ key }) => effect('charge', key))
      if (ctx.attempt > 1 && runs++ < 1_000) return new Promise((done) => setImmediate(done))
      return effect('mail', 'one')
    }
    const { findings } = await crashEverywhere('order', once, 1)
    expect(findings.map(({ problem }) => problem)).toContain("effect 'mail' did not happen")
  })

  it('takes a definition with its types, and its queue', async () => {
    const sum = defineTask('sum', { input: z.array(z.number()), queue: 'sums' })
    const report = await crashEverywhere(
      sum,
      () => async (numbers, ctx) => ctx.step('sum', () => numbers.reduce((a, b) => a + b, 0)),
      [1, 2],
    )
    expect(report).toMatchObject({ calls: 1, scenarios: 5, findings: [] })
  })
})
