import { expect, test } from 'vitest'
import { errorTree } from '../../src/cli/output/error-lines.ts'

const inNode = Array.from({ length: 5 }, (_, n) => `    at fetch${n} (node:internal/deps/undici/undici:${n}:35)`)

test('the frames of an error begin where the code of the handler is, not inside Node', () => {
  const stack = ['Error: bad port', ...inNode, '    at file:///app/tasks.ts:5:48'].join('\n')
  expect(errorTree({ name: 'Error', message: 'bad port', stack })).toEqual(['at file:///app/tasks.ts:5:48'])
})

test('frames of Node are shown if there are no others', () => {
  const stack = ['Error: bad port', ...inNode].join('\n')
  expect(errorTree({ name: 'Error', message: 'bad port', stack })).toHaveLength(4)
})
