/** A report for every second (in earnest: every morning), computed in a thread so that the worker's other tasks go on. Run it: node examples/cron-report.ts */
import { connect, defineTask } from 'holdfast'

const report = defineTask<{ largest: number }, { primes: number; slot: string }>('report', { timeout: '1m' })
const greet = defineTask<{ name: string }, string>('greet')

const holdfast = await connect(process.argv[2] ?? 'memory:')
const worker = holdfast
  .worker({ concurrency: 4 })
  .handle(report, { module: new URL('./cron-report/primes.ts', import.meta.url), isolate: 'thread' })
  .handle(greet, ({ name }) => `hello, ${name}`)
worker.start()

// Start-up code may say this at every start, in every process: an unchanged plan keeps its slots.
// Five fields are the usual cron (`0 7 * * *`, with a timezone); six begin with seconds.
for (let start = 0; start < 2; start++)
  await holdfast.schedules.ensure({ id: 'report', type: report, input: { largest: 200_000 }, cron: '* * * * * *' })

const reports = async () => (await holdfast.list({ type: 'report', status: 'completed', limit: 10 })).tasks
while ((await reports()).length < 2) {
  // The event loop of the worker is free while the report is computed.
  const hello = await holdfast.submit(greet, { name: 'Ann' })
  await holdfast.wait(hello)
  await new Promise((done) => setTimeout(done, 50))
}
await holdfast.schedules.delete('report')

const outputs = (await reports()).map(({ output }) => output as { primes: number; slot: string })
const slots = new Set(outputs.map(({ slot }) => slot))
console.log(`${outputs[0]!.primes} primes below 200000`)
console.log(slots.size === outputs.length ? 'one report for each slot' : `twice: ${[...slots].join(', ')}`)
await holdfast.close()
