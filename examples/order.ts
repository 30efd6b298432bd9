/** An order that is paid, waits for an approval with a reminder, and ships. Run it: node examples/order.ts */
import { connect, defineTask, SignalTimeout } from 'holdfast'

interface Approval {
  readonly by: string
}

const order = defineTask<{ item: string; total: number }, { receipt: string; approvedBy: string }>('order')

await using holdfast = await connect(process.argv[2] ?? 'memory:')

/** What the world has seen. A real payment service takes the key of the step as its idempotency key. */
const said: string[] = []

const worker = holdfast.worker().handle(order, async ({ item, total }, ctx) => {
  const receipt = await ctx.step('charge', () => {
    said.push(`charged ${total}`)
    return `receipt for ${item}`
  })
  // The run ends here until the signal comes, or it is time for the reminder.
  let approval: Approval
  try {
    approval = await ctx.waitFor<Approval>('approval', { signal: 'approved', timeout: '1s' })
  } catch (error) {
    if (!(error instanceof SignalTimeout)) throw error
    await ctx.step('remind', () => void said.push('reminded the manager'))
    approval = await ctx.waitFor<Approval>('approval after the reminder', { signal: 'approved' })
  }
  await ctx.step('ship', () => void said.push(`shipped ${item}, approved by ${approval.by}`))
  return { receipt, approvedBy: approval.by }
})

worker.start()
const task = await holdfast.submit(order, { item: 'a lamp', total: 40 })

// The manager answers after the reminder. A repeat with the same signalId is kept once.
while (!said.includes('reminded the manager')) await new Promise((done) => setTimeout(done, 20))
for (let click = 0; click < 2; click++)
  await holdfast.signal(task.id, 'approved', { by: 'Ann' }, { signalId: 'the form of Ann' })

const { receipt } = await holdfast.wait(task)
await worker.stop()
for (const line of said) console.log(line)
const { attempts, steps } = await holdfast.get(task.id)
console.log(`${receipt}: ${attempts} runs, steps: ${steps.map(({ name }) => name).join(', ')}`)
