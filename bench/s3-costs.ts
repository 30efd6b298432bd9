/** Prints the tables of docs/stores/s3.md: what tasks and idle workers cost on S3, in counted requests. */
import { idleMonth } from '../test/kv/idle-month.ts'
import { costTable, measureCosts, SCENES } from '../test/s3/simulated/costs.ts'
import { startSimulatedS3 } from '../test/servers/simulated-s3/start.ts'

const s3 = await startSimulatedS3({ latency: 30 })
try {
  const rows = []
  for (const scene of SCENES) rows.push(await measureCosts(s3, scene))
  console.log(costTable(rows))
  console.log()
  console.log(await idleMonth.table())
} finally {
  await s3.remove()
}
