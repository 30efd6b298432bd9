/** A process that starts a server, says its pids, and stays: for the test that kills it. */
import { startNats } from './nats.ts'
import { startS3 } from './s3.ts'

const pids = process.argv[2] === 's3' ? (await startS3()).pids() : [(await startNats()).pid]
process.stdout.write(`${JSON.stringify(pids)}\n`)
setInterval(() => {}, 60_000)
