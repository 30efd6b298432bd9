/** A real S3 server for the tests: Ceph with one monitor, one disk (OSD) and one gateway, which survives kill -9. */
import { type ChildProcess, execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cephSettings } from './ceph-settings.ts'
import { debianPackages } from './debian-packages.ts'
import { freePort, killed, spawn, tied } from './processes.ts'
import { type S3Keys, sendSigned } from './signed-request.ts'

type Part = 'monitor' | 'disk' | 'gateway'

export interface S3Server {
  /** See `s3Target`. */
  readonly url: string
  readonly version: string
  pids(): readonly number[]
  /** kill -9: an outage. The gateway keeps nothing itself. */
  killGateway(): Promise<void>
  startGateway(): Promise<void>
  /** kill -9: the gateway stays, and its requests wait. */
  killDisk(): Promise<void>
  startDisk(): Promise<void>
  /** kill -9 of everything, and from there to answering again. */
  crash(): Promise<void>
  restart(): Promise<void>
  /** Somebody who may do nothing unless a policy of a bucket says so; the name is also the id of the key. */
  addUser(name: string): Promise<S3Keys>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

export interface S3Target extends S3Keys {
  readonly endpoint: string
  readonly bucket: string
}

const run = promisify(execFile)
const DEADLINE = 60_000
const PROGRAMS = ['ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'ceph-authtool', 'monmaptool']
const PACKAGES = ['radosgw', 'ceph-mon', 'ceph-osd', 'ceph-base', 'ceph-common']
const KEYS: S3Keys = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast-secret', region: 'us-east-1' }
const BUCKET = 'holdfast-test'

/** `http://keyId:secret@host:port/bucket?region=…`, the one text that says all: for HOLDFAST_TEST_S3_URL, too. */
export const s3Target = (url: string): S3Target => {
  const { protocol, host, username, password, pathname, searchParams } = new URL(url)
  return {
    endpoint: `${protocol}//${host}`,
    bucket: pathname.slice(1) || BUCKET,
    region: searchParams.get('region') ?? 'us-east-1',
    accessKeyId: decodeURIComponent(username) || (process.env['AWS_ACCESS_KEY_ID'] ?? ''),
    secretAccessKey: decodeURIComponent(password) || (process.env['AWS_SECRET_ACCESS_KEY'] ?? ''),
  }
}

/** The bucket of the target; one that is there and ours stays. */
export const makeBucket = async ({ endpoint, bucket, ...keys }: S3Target): Promise<void> => {
  const answer = await sendSigned({ method: 'PUT', url: new URL(`/${bucket}`, endpoint) }, keys)
  const text = await answer.text()
  if (!answer.ok && !text.includes('BucketAlreadyOwnedByYou'))
    throw new Error(`bucket ${bucket} could not be made: ${answer.status} ${text}`)
}

/** Polls what cannot be awaited: a file or a port of another process. */
const until = async (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => {
  const end = performance.now() + DEADLINE
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`waited ${DEADLINE} ms until ${what}`)
    await pause(20)
  }
}

class Ceph implements S3Server {
  readonly url: string
  readonly version: string
  readonly #folder: string
  readonly #endpoint: string
  readonly #command: (program: string, args: readonly string[]) => [string, string[]]
  readonly #parts = new Map<Part, ChildProcess>()

  constructor(
    folder: string,
    gatewayPort: number,
    version: string,
    command: (program: string, args: readonly string[]) => [string, string[]],
  ) {
    this.#folder = folder
    this.#endpoint = `http://127.0.0.1:${gatewayPort}`
    this.url = `http://${KEYS.accessKeyId}:${KEYS.secretAccessKey}@127.0.0.1:${gatewayPort}/${BUCKET}?region=${KEYS.region}`
    this.version = version
    this.#command = command
  }

  get #settings(): string {
    return join(this.#folder, 'ceph.conf')
  }

  pids(): number[] {
    return [...this.#parts.values()].map((child) => child.pid!)
  }

  async #once(program: string, ...args: string[]): Promise<void> {
    await run(...this.#command(program, args), { timeout: DEADLINE })
  }

  /** `-f`: it stays our child, so its pid is known. */
  #start(part: Part, program: string, ...args: string[]): void {
    const output = openSync(join(this.#folder, `${part}.out`), 'a')
    const command = this.#command(program, [...args, '-c', this.#settings, '-f'])
    this.#parts.set(part, spawn(...tied(...command), { stdio: ['ignore', output, output] }))
    closeSync(output)
  }

  async #kill(part: Part): Promise<void> {
    const child = this.#parts.get(part)
    if (child) await killed(child)
    this.#parts.delete(part)
  }

  /** Whatever answers on a port is only ours while our child lives. */
  #mustLive(): void {
    for (const [part, child] of this.#parts)
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the ${part} ended: ${readFileSync(join(this.#folder, `${part}.out`), 'utf8').slice(-2_000)}`)
  }

  /** Empty disks, the keys of the parts, and who may use the gateway. */
  async make(monitorPort: number, id: string): Promise<void> {
    const keyring = join(this.#folder, 'keyring')
    const map = join(this.#folder, 'monmap')
    const all = ['--cap', 'mon', 'allow *', '--cap', 'osd', 'allow *', '--cap', 'mgr', 'allow *']
    await this.#once('ceph-authtool', '-C', keyring, '-g', '-n', 'mon.', '--cap', 'mon', 'allow *')
    for (const name of ['client.rgw', 'osd.0']) await this.#once('ceph-authtool', keyring, '-g', '-n', name, ...all)
    const address = `[v2:127.0.0.1:${monitorPort}]`
    await this.#once('monmaptool', '--create', '--enable-all-features', '--addv', 'a', address, '--fsid', id, map)
    await Promise.all([
      this.#once('ceph-mon', '--mkfs', '-i', 'a', '--monmap', map, '--keyring', keyring, '-c', this.#settings),
      this.#once('ceph-osd', '--mkfs', '-i', '0', '--no-mon-config', '--osd-uuid', randomUUID(), '-c', this.#settings),
    ])
    await this.#startCore()
    await this.#makeUser('holdfast', KEYS)
    await this.startGateway()
    await makeBucket(s3Target(this.url))
  }

  async #makeUser(name: string, { accessKeyId, secretAccessKey }: S3Keys): Promise<void> {
    const user = [`--uid=${name}`, `--display-name=${name}`, `--access-key=${accessKeyId}`]
    const secret = `--secret-key=${secretAccessKey}`
    await this.#once('radosgw-admin', '-c', this.#settings, '-n', 'client.rgw', 'user', 'create', ...user, secret)
  }

  async addUser(name: string): Promise<S3Keys> {
    const keys = { ...KEYS, accessKeyId: name }
    await this.#makeUser(name, keys)
    return keys
  }

  async #startCore(): Promise<void> {
    this.#start('monitor', 'ceph-mon', '-i', 'a')
    await this.startDisk()
  }

  async startDisk(): Promise<void> {
    const log = join(this.#folder, 'osd.0.log')
    const begin = statSync(log, { throwIfNoEntry: false })?.size ?? 0
    this.#start('disk', 'ceph-osd', '-i', '0')
    // A client that comes earlier waits for a tick of five seconds.
    await until('the disk is active', () => {
      this.#mustLive()
      return (
        statSync(log, { throwIfNoEntry: false }) !== undefined &&
        readFileSync(log).subarray(begin).includes('booting -> active')
      )
    })
  }

  killDisk(): Promise<void> {
    return this.#kill('disk')
  }

  async startGateway(): Promise<void> {
    this.#start('gateway', 'radosgw', '-n', 'client.rgw')
    await until('the gateway answers', async () => {
      this.#mustLive()
      return fetch(this.#endpoint).then(
        (answer) => answer.body?.cancel().then(() => true) ?? true,
        () => false,
      )
    })
    this.#mustLive()
  }

  killGateway(): Promise<void> {
    return this.#kill('gateway')
  }

  async crash(): Promise<void> {
    await Promise.all([this.#kill('gateway'), this.#kill('disk'), this.#kill('monitor')])
  }

  async restart(): Promise<void> {
    await this.#startCore()
    await this.startGateway()
  }

  /** Its disks are made for kill -9; a friendly end would take five seconds. */
  async remove(): Promise<void> {
    await this.crash()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export const startS3 = async (): Promise<S3Server> => {
  const wanted = { suites: ['forky', 'sid'], packages: PACKAGES, programs: PROGRAMS, libraries: true }
  const { folder: programs, version, command } = await debianPackages('ceph', wanted)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ceph-'))
  mkdirSync(join(folder, 'osd.0'))
  const [gatewayPort, monitorPort] = await Promise.all([freePort(), freePort()])
  const id = randomUUID()
  writeFileSync(join(folder, 'ceph.conf'), cephSettings({ folder, programs, id, monitorPort, gatewayPort }))
  const ceph = new Ceph(folder, gatewayPort, version, command)
  try {
    await ceph.make(monitorPort, id)
    return ceph
  } catch (error) {
    await ceph.remove()
    throw error
  }
}
