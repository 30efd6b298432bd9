/** Which store the command line uses, and who said so. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

describe('config', () => {
  it('without any setting, the default is used', async () => {
    const folder = makeFolder()
    expect(await folder.run(['config', 'show'])).toEqual({
      code: 0,
      stdout: 'url: sqlite:./holdfast.db (from default)\nfile: none\n',
      stderr: '',
    })
  })

  it.each([
    ['holdfast.config.ts', "const url: string = 'sqlite:./own.db'\nexport default { url }"],
    ['holdfast.config.js', "export default { url: 'sqlite:./own.db' }"],
    ['holdfast.config.json', '{ "url": "sqlite:./own.db" }'],
  ])('%s names the store; the variable counts before it, the flag before both', async (name, text) => {
    const folder = makeFolder()
    folder.write('package.json', '{ "type": "module" }')
    folder.write(name, text)
    const show = async (args: string[] = [], env = {}): Promise<unknown> =>
      JSON.parse((await folder.run(['config', 'show', '--json', ...args], { env })).stdout)
    expect(await show()).toEqual({ url: { value: 'sqlite:./own.db', from: name }, file: name })
    const env = { HOLDFAST_URL: 'postgres://ann:secret@localhost/app?password=hidden&x=1' }
    expect(await show([], env)).toEqual({
      url: { value: 'postgres://ann:***@localhost/app?password=***&x=1', from: 'HOLDFAST_URL' },
      file: name,
    })
    expect(await show(['--url', 'sqlite:./flag.db'], env)).toMatchObject({
      url: { value: 'sqlite:./flag.db', from: '--url' },
    })
    expect((await folder.run(['submit', '-t', 't', '-i', '1'])).code).toBe(0)
    expect([folder.has('own.db'), folder.has('holdfast.db')]).toEqual([true, false])
  })

  it.each([
    [{ 'holdfast.config.json': '{' }, 'holdfast.config.json cannot be read'],
    [{ 'holdfast.config.json': '[]' }, 'must be an object'],
    [{ 'holdfast.config.json': '{"uri":"x"}' }, "'uri' is not a setting"],
    [{ 'holdfast.config.json': '{"url":7}' }, 'url must be the address of a store'],
    [{ 'holdfast.config.json': '{}', 'holdfast.config.js': '' }, 'are both here'],
  ])('%j is bad input, for every verb that opens a store', async (files, message) => {
    const folder = makeFolder()
    for (const [name, text] of Object.entries(files)) folder.write(name, text)
    for (const args of [['config', 'show'], ['list']]) {
      const { code, stdout, stderr } = await folder.run(args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(message)
    }
  })
})
