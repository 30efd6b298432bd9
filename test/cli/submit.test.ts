/** `holdfast submit`: what is taken, and what is refused before anything is written. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\n$/

describe('a good task', () => {
  const folder = makeFolder()

  it('is stored, its id printed alone, and a new store announced on standard error', async () => {
    const { code, stdout, stderr } = await folder.run(['submit', '-t', 'send_email', '-i', '{"to":"ann"}'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(ID) })
    expect(stderr).toMatch(/^created a store at sqlite:.*holdfast\.db\n$/)
    const task = await folder.withClient((client) => client.get(stdout.trim()))
    expect(task).toMatchObject({ type: 'send_email', queue: 'default', input: { to: 'ann' }, status: 'pending' })
  })

  it('takes every option of the specification [W01][W06]', async () => {
    const args = [
      '--expires-at',
      '2126-01-28T17:00:00Z',
      '--delay',
      '1h30m',
      '--priority',
      '-5',
      '--max-retries',
      'unlimited',
      '--max-reschedules',
      '100',
    ]
    const more = [
      '--timeout',
      '30s',
      '--key',
      'k-1',
      '--queue',
      'mail',
      '--tag',
      'team=blue',
      '--tag',
      'note=a=b',
      '--json',
    ]
    const { code, stdout, stderr } = await folder.run(['submit', '--type', 't', '--input', '[1]', ...args, ...more])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const task = JSON.parse(stdout)
    expect(task).toMatchObject({
      type: 't',
      queue: 'mail',
      input: [1],
      priority: -5,
      expiresAt: '2126-01-28T17:00:00.000Z',
      maxRetries: null,
      maxReschedules: 100,
      timeout: 30_000,
      idempotencyKey: 'k-1',
      tags: { team: 'blue', note: 'a=b' },
    })
    expect(Date.parse(task.availableAt) - Date.parse(task.createdAt)).toBe(5_400_000)
  })

  it('takes attempts, retry policies, the life of a key, and an id', async () => {
    const submit = async (...args: string[]) =>
      JSON.parse((await folder.run(['submit', '-t', 't', '-i', '1', '--json', ...args])).stdout)
    expect(await submit('--max-attempts', '5')).toMatchObject({ maxRetries: 4 })
    expect(await submit('--retry-policy', 'patient')).toMatchObject({ maxRetries: 8 })
    expect(await submit('--retry-policy', '{"base":"5s","max":"1h","jitter":"none"}')).toMatchObject({
      retryPolicy: { base: 5_000, max: 3_600_000, jitter: 'none' },
    })
    const id = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'
    expect(await submit('--id', id, '--group', 'acme')).toMatchObject({ id, group: 'acme' })
    const key = ['--key', 'once', '--idempotency-ttl', '1ms']
    const first = await submit(...key)
    expect((await submit(...key)).id).not.toBe(first.id)
    await submit('--key', 'same')
    const other = ['submit', '-t', 'other', '-i', '2', '--key', 'same']
    expect((await folder.run(other)).code).toBe(4)
    expect((await folder.run([...other, '--on-mismatch', 'existing'])).code).toBe(0)
  })

  it.each([
    ['1h', 3_600_000],
    ['5m', 300_000],
    ['30m', 1_800_000],
    ['7d', 604_800_000],
  ])('takes --ttl %s [W02]', async (ttl, expected) => {
    const { stdout } = await folder.run(['submit', '-t', 't', '-i', '{}', '--ttl', ttl, '--json'])
    const { expiresAt, createdAt } = JSON.parse(stdout)
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(expected)
  })

  it('reads its input from standard input and from a file', async () => {
    const piped = await folder.run(['submit', '-t', 't', '-i', '-', '--json'], { input: ' {"a": "ü€😀"}\n' })
    expect(JSON.parse(piped.stdout).input).toEqual({ a: 'ü€😀' })
    const path = folder.write('input.json', '[null, ""]')
    const read = await folder.run(['submit', '-t', 't', '-i', `@${path}`, '--json'])
    expect(JSON.parse(read.stdout).input).toEqual([null, ''])
  })

  it('is the same task again under the same key, and a conflict with another input', async () => {
    const first = await folder.run(['submit', '-t', 't', '-i', '1', '--key', 'once'])
    const again = await folder.run(['submit', '-t', 't', '-i', '1', '--key', 'once'])
    expect(again.stdout).toBe(first.stdout)
    expect(again.stderr).toBe("the key 'once' already exists: this is its task (pending)\n")
    const other = await folder.run(['submit', '-t', 't', '-i', '2', '--key', 'once'])
    expect({ code: other.code, stdout: other.stdout }).toEqual({ code: 4, stdout: '' })
    expect(other.stderr).toContain('(IDEMPOTENCY_CONFLICT)')
  })

  it('goes to the store that HOLDFAST_URL names, and --url takes precedence', async () => {
    const env = { HOLDFAST_URL: 'sqlite:./from-env.db' }
    await folder.run(['submit', '-t', 't', '-i', '1'], { env })
    expect(folder.has('from-env.db')).toBe(true)
    await folder.run(['submit', '-t', 't', '-i', '1', '--url', 'sqlite:./from-flag.db'], { env })
    expect(folder.has('from-flag.db')).toBe(true)
  })

  it('does not go to a file of its own where HOLDFAST_URL is set but empty', async () => {
    const { code, stdout, stderr } = await folder.run(['submit', '-t', 't', '-i', '1'], { env: { HOLDFAST_URL: '' } })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('HOLDFAST_URL is set, but empty: name a store in it, or unset it')
  })
})

describe('a bad task', () => {
  const folder = makeFolder()
  const T = ['-t', 't']
  const OK = ['-t', 't', '-i', '1']

  it.each<[why: string, args: string[], names: RegExp]>([
    ['no type', ['-i', '1'], /-t, --type is required/],
    ['no input', T, /-i, --input is required/],
    ['malformed JSON', [...T, '-i', '{"a":1,}'], /--input is not JSON: .* at position 7 \(line 1, column 8\)/],
    ['a bare word', [...T, '-i', '{"a": [true, nope]}'], /at position 14/],
    ['trailing text', [...T, '-i', '{} x'], /at position 3/],
    ['no text', [...T, '-i', ''], /--input is empty/],
    ['a number that overflows', [...T, '-i', '{"a":1e400}'], /--input has the number 1e400 at 'a'/],
    [
      'an integer that would lose digits',
      [...T, '-i', '[9007199254740993]'],
      /9007199254740993 .* stored as 9007199254740992/,
    ],
    ['nesting beyond all bounds', [...T, '-i', '['.repeat(20_000) + ']'.repeat(20_000)], /nested/],
    ['a file that is not there', [...T, '-i', '@nowhere.json'], /--input cannot read 'nowhere.json'/],
    ['a bad type', ['-t', 'a*b', '-i', '1'], /type 'a\*b'/],
    ['an empty type', ['-t', '', '-i', '1'], /type ''/],
    ['a bad queue', [...OK, '--queue', '../x y'], /queue '..\/x y'/],
    ['a duration without a unit', [...OK, '--ttl', '5'], /ttl: '5' has no unit/],
    ['a bad instant', [...OK, '--at', 'tomorrow'], /at 'tomorrow'/],
    ['two expiries', [...OK, '--ttl', '1h', '--expires-at', '2126-01-01T00:00:00Z'], /ttl and expiresAt/],
    ['two beginnings', [...OK, '--delay', '1h', '--at', '2126-01-01T00:00:00Z'], /at and delay/],
    ['a priority that is no number', [...OK, '--priority', 'high'], /priority must be a whole number/],
    ['a limit that is no number', [...OK, '--max-retries', '1.5'], /maxRetries must be/],
    ['a tag without a value', [...OK, '--tag', 'team'], /--tag 'team' must be written name=value/],
    ['a tag twice', [...OK, '--tag', 'a=1', '--tag', 'a=2'], /--tag 'a' is given twice/],
    ['a reserved key', [...OK, '--key', 'replay:1'], /idempotencyKey/],
    ['an unknown option', [...OK, '--prioirty', '1'], /unknown option '--prioirty' \(Did you mean --priority\?\)/],
    ['an option without its value', [...OK, '--ttl'], /--ttl/],
    ['a stray argument', [...OK, 'more'], /too many arguments/],
    ['an address of no store', [...OK, '--url', 'ftp://x'], /'ftp:\/\/x' is not the address of a store/],
    [
      'a store that ends with the command',
      [...OK, '--url', 'memory:'],
      /url: 'memory:' is lost when this command ends/,
    ],
  ])('with %s ends with 2, says which field, and leaves nothing behind', async (_, args, names) => {
    const { code, stdout, stderr } = await folder.run(['submit', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(names)
    expect(folder.has('holdfast.db')).toBe(false)
  })

  it('with bytes that are not UTF-8 exits with 2', async () => {
    const { code, stderr } = await folder.run(['submit', ...T, '-i', '-'], {
      input: new Uint8Array([0x22, 0xff, 0x22]),
    })
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('--input is not valid UTF-8') })
  })

  it('prints its error as one line of JSON with --json', async () => {
    const { code, stdout, stderr } = await folder.run(['submit', ...OK, '--ttl', '5', '--json'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'INVALID_DURATION',
        message: "ttl: '5' has no unit: write '5s' or '5ms'",
        fix: expect.any(String),
      },
    })
    const unknown = await folder.run(['submit', ...OK, '--nope', '--json'])
    expect(JSON.parse(unknown.stderr)).toMatchObject({
      error: { code: 'INVALID_OPTION', message: expect.stringContaining("unknown option '--nope'") },
    })
  })
})
