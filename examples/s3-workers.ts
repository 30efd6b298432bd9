/** Workers that share a bucket and nothing else: no database, no broker. Run it: node examples/s3-workers.ts s3://bucket/prefix */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, defineTask } from 'holdfast'

const count = defineTask<{ text: string }, { words: number; by: number }>('count_words', { maxRetries: 5 })

const [url, role] = process.argv.slice(2)
if (url === undefined) throw new Error('give the address of a bucket: s3://bucket/prefix')
const holdfast = await connect(url, { create: true })

if (role === 'worker') {
  // The same program on any number of machines. SIGTERM stops it when its tasks have ended.
  await holdfast
    .worker({ concurrency: 4 })
    .handle(count, ({ text }) => ({ words: text.split(' ').length, by: process.pid }))
    .run()
  await holdfast.close()
} else {
  const workers = [1, 2].map(() => spawn(process.execPath, [import.meta.filename, url, 'worker'], { stdio: 'inherit' }))
  const texts = Array.from({ length: 20 }, (_, n) =>
    Array(n + 1)
      .fill('word')
      .join(' '),
  )
  // A key for each, so that a second run of this program makes no second task.
  const tasks = await Promise.all(
    texts.map((text, n) => holdfast.submit(count, { text }, { idempotencyKey: `count-${n}` })),
  )
  const outputs = await Promise.all(tasks.map((task) => holdfast.wait(task)))
  console.log(`${outputs.reduce((sum, { words }) => sum + words, 0)} words in ${outputs.length} texts`)
  for (const worker of workers) worker.kill('SIGTERM')
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
  await holdfast.close()
}
