/** What a handler may do inside the function of a step: other steps, but no sleep and no wait. */
import { describe, expect, it } from 'vitest'
import type { Handler } from '../../../../src/index.ts'
import { gate, refuses, shown } from '../../setup.ts'
import { stage } from './setup.ts'

const dies = async (handler: Handler): Promise<{ readonly code?: string; readonly message: string }> => {
  const { serve, submitted, task } = await stage()
  serve(handler)
  const { status, attempts, lastError } = await task(await submitted())
  expect([status, attempts], 'a repeat would fail alike').toEqual(['failed', 1])
  return lastError!
}

describe('inside the function of a step', () => {
  it('a sleep or a wait is refused at once, because neither it nor the step would ever end', async () => {
    const inner = (name: string): string =>
      `step '${name}' sleeps or waits inside the function of step 'outer', which would never end: call it outside of that function`
    expect(await dies((_, ctx) => ctx.step('outer', () => ctx.sleep('nap', '1h')))).toMatchObject({
      code: 'STEP_INVALID',
      message: inner('nap'),
    })
    const late: Handler = (_, ctx) =>
      ctx.step('outer', async () => {
        await Promise.resolve()
        return Promise.all([ctx.step('other', () => 1), ctx.waitFor('go')])
      })
    expect(await dies(late)).toMatchObject({ code: 'STEP_INVALID', message: inner('go') })
  })

  it('other steps are recorded before it', async () => {
    const { serve, submitted, task } = await stage()
    serve((_, ctx) => ctx.step('outer', async () => (await ctx.step('inner', () => 1)) + 1))
    const done = await task(await submitted())
    expect(shown(done)).toMatchObject({ status: 'completed', output: 2 })
    expect(done.steps.map(({ name }) => name)).toEqual(['inner', 'outer'])
  })

  it('work may be begun that sleeps when the step is over', async () => {
    const { serve, submitted, task } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      let later: Promise<void> = Promise.resolve()
      await ctx.step('outer', () => {
        later = end.opened.then(() => ctx.sleep('nap', '1h'))
      })
      end.open()
      await later
    })
    expect((await task(await submitted())).parked).toMatchObject({ step: 'nap' })
  })
})

it('a step without a function is refused by name', async () => {
  const { serve, submitted, did, task } = await stage()
  serve(async (_, ctx) => {
    await refuses('INVALID_OPTION', /step 'value' needs a function/)(ctx.step('value', 5 as never))
    did.push('refused')
  })
  expect((await task(await submitted())).status).toBe('completed')
  expect(did).toEqual(['refused'])
})
