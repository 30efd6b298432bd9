/** A handler for untrusted pictures, which trusts them too much. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { TaskContext } from 'holdfast'

const LARGEST = 64

export default ({ from, to }: { from: string; to: string }, ctx: TaskContext): { width: number; height: number } => {
  const picture = readFileSync(from)
  const head = /^P5 (\d+) (\d+) 255\n/.exec(picture.subarray(0, 64).toString('latin1'))
  if (head === null) process.exit(3) // as a library might
  const [width, height] = [Number(head[1]), Number(head[2])]
  let step = 1
  while (width / step !== LARGEST && height / step !== LARGEST) step *= 2 // never, for some
  const small = Buffer.alloc((width / step) * (height / step))
  for (let at = 0; at < small.length; at++) {
    const [x, y] = [at % (width / step), Math.floor(at / (width / step))]
    small[at] = picture[head[0].length + y * step * width + x * step]!
    if (at % 1_000 === 0) ctx.progress({ of: small.length, done: at })
  }
  writeFileSync(to, Buffer.concat([Buffer.from(`P5 ${width / step} ${height / step} 255\n`), small]))
  return { width: width / step, height: height / step }
}
