/** Shrinks pictures in threads: one that never ends is killed at its timeout, one that crashes fails alone. Run it: node examples/thumbnails.ts */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, defineTask } from 'holdfast'

const shrink = defineTask<{ from: string; to: string }, { width: number; height: number }>('shrink', {
  timeout: '5s',
  maxRetries: 0,
})

// Portable grey maps, because they need no library: a header, then a byte for each pixel.
const folder = mkdtempSync(join(tmpdir(), 'thumbnails-'))
const pixels = Buffer.alloc(256 * 128, 200)
writeFileSync(join(folder, 'good.pgm'), Buffer.concat([Buffer.from('P5 256 128 255\n'), pixels]))
writeFileSync(join(folder, 'endless.pgm'), 'P5 0 0 255\n')
writeFileSync(join(folder, 'broken.pgm'), 'not a picture')

const holdfast = await connect(process.argv[2] ?? 'memory:')
const worker = holdfast.worker({ concurrency: 2 }).handle(shrink, {
  module: new URL('./thumbnails/shrink.ts', import.meta.url),
  isolate: 'thread', // 'process' for native code, which can crash
  heap: 256,
})
worker.start()

for (const name of ['good', 'broken', 'endless']) {
  const to = join(folder, `${name}.small.pgm`)
  const options = name === 'endless' ? { timeout: '1s' } : {}
  const task = await holdfast.submit(shrink, { from: join(folder, `${name}.pgm`), to }, options)
  try {
    const { width, height } = await holdfast.wait(task)
    console.log(`${name}: ${width} × ${height}, ${readFileSync(to).length} bytes`)
  } catch {
    const { lastError } = await holdfast.get(task.id)
    console.log(`${name}: ${lastError!.message}`)
  }
}

await holdfast.close()
rmSync(folder, { recursive: true })
