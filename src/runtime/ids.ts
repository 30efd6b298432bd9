/** Task ids: UUIDv7, strictly increasing within this process, so that ties in the claim order break by order of submission. */
import { randomFillSync } from 'node:crypto'
import { V7Generator } from 'uuidv7'

const words = new Uint32Array(1_024)
let used = words.length

/** Draws random words a thousand at a time: one system call per id doubled its cost. */
const generator = new V7Generator({
  nextUint32: () => {
    if (used === words.length) {
      randomFillSync(words)
      used = 0
    }
    return words[used++]!
  },
})

export const newId = (): string => generator.generate().toString()
