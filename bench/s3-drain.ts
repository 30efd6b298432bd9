/** Prints how fast workers beside each other drain a queue on S3 in virtual time, for docs/benchmarks.md. */
import { bundled, compiled } from '../test/simulation/bundle.ts'
import { drain } from '../test/simulation/s3-drain.ts'

const program = compiled(await bundled())
console.log('| workers | tasks/s | requests of a task |\n| ---: | ---: | ---: |')
for (const workers of [1, 2, 4, 8]) {
  const { perSecond, requestsPerTask } = await drain(program, { workers, tasks: 5_000, concurrency: 50, seed: 1 })
  console.log(`| ${workers} | ${perSecond} | ${requestsPerTask.toFixed(2)} |`)
}
