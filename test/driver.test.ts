/** Drivers are optional: without theirs, a store says what to install. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/** As if the package had never been installed. */
const without = (name: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module'
    registerHooks({ resolve(specifier, context, next) {
      if (specifier !== '${name}') return next(specifier, context)
      throw Object.assign(new Error("Cannot find package '${name}'"), { code: 'ERR_MODULE_NOT_FOUND' })
    } })`)}`

const connectTo = (address: string): string => `
  const { connect } = await import('${new URL('../src/index.ts', import.meta.url)}')
  await connect('${address}').then(() => console.log('connected'), (error) => console.log(JSON.stringify(error)))`

test('PostgreSQL without pg is told to install it', async () => {
  const args = ['--import', without('pg'), '--input-type=module', '--eval', connectTo('postgres://localhost/x')]
  const { stdout } = await run(process.execPath, args)
  expect(JSON.parse(stdout)).toMatchObject({
    code: 'DRIVER_MISSING',
    message: expect.stringContaining('npm install pg'),
    details: { package: 'pg' },
  })
})

test('S3 without the AWS SDK is told to install it', async () => {
  const name = '@aws-sdk/client-s3'
  const { stdout } = await run(process.execPath, [
    '--import',
    without(name),
    '--input-type=module',
    '--eval',
    connectTo('s3://bucket/jobs'),
  ])
  expect(JSON.parse(stdout)).toMatchObject({
    code: 'DRIVER_MISSING',
    message: expect.stringContaining(`npm install ${name}`),
    details: { package: name },
  })
})

test('a store that does not need it does not ask for it', async () => {
  const args = ['--import', without('pg'), '--input-type=module', '--eval', connectTo('memory:')]
  expect((await run(process.execPath, args)).stdout).toBe('connected\n')
})
