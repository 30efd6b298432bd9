/** What Debian's archive has, checked as apt does: the signed InRelease vouches for Packages.gz, and that for every package. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

export interface DebianPackage {
  readonly name: string
  readonly version: string
  /** Where its .deb is. */
  readonly url: string
  readonly sha256: string
  /** Names of the packages that it needs; of alternatives the first. */
  readonly needs: readonly string[]
}

/** An archive, and who signs what it has. */
export interface Archive {
  readonly address: string
  readonly keyring: string
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
const SOURCES = '/etc/apt/sources.list'

/** The archive that this machine's own apt uses: a line `URIs: …/debian`, or `deb …/debian suite component`. */
const addressFromApt = (): string => {
  const folder = `${SOURCES}.d`
  const more = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
  for (const file of [SOURCES, ...more].filter((file) => /\.(list|sources)$/.test(file) && existsSync(file))) {
    const line = /^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(https?:\/\/\S+\/debian)\/?(?:\s|$)/m.exec(
      readFileSync(file, 'utf8'),
    )
    if (line) return line[1]!
  }
  throw new Error('apt has no Debian archive among its sources: HOLDFAST_DEBIAN_ARCHIVE may name one')
}

export const debian = (): Archive => ({
  address: process.env['HOLDFAST_DEBIAN_ARCHIVE'] || addressFromApt(),
  keyring: KEYRING,
})

/** Three tries: archives are far away. */
export const download = async (url: string, tries = 3): Promise<Buffer> => {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(120_000) })
    if (!answer.ok) throw new Error(`${answer.status} for ${new URL(url).pathname}`)
    return Buffer.from(await answer.arrayBuffer())
  } catch (error) {
    if (tries === 1) throw error
    return download(url, tries - 1)
  }
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Where gpgv and Debian's keys are at hand; elsewhere the checksums still guard against damage. */
const checkSignature = (release: Buffer, keyring: string): void => {
  if (!existsSync(keyring) || spawnSync('gpgv', ['--version']).status !== 0) return
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'))
  try {
    const file = join(folder, 'InRelease')
    writeFileSync(file, release)
    const { status, stderr } = spawnSync('gpgv', ['-q', '--keyring', keyring, file], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`the archive's signature does not hold: ${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const fieldOf = (stanza: string, field: string): string => new RegExp(`^${field}: (.*)$`, 'm').exec(stanza)?.[1] ?? ''

const needsOf = (stanza: string): string[] =>
  [fieldOf(stanza, 'Pre-Depends'), fieldOf(stanza, 'Depends')]
    .flatMap((list) => list.split(','))
    .map((need) => need.split('|')[0]!.trim().split(/[ :(]/)[0]!)
    .filter((name) => name !== '')

/** All packages of a suite's main component, by name. */
export const readSuite = async (
  suite: string,
  { address, keyring }: Archive,
): Promise<(name: string) => DebianPackage | undefined> => {
  const architecture = ARCHITECTURES[process.arch]
  if (process.platform !== 'linux' || architecture === undefined)
    throw new Error(`Debian's programs do not run on ${process.platform} ${process.arch}`)
  const index = `main/binary-${architecture}/Packages.gz`
  const [release, packages] = await Promise.all([
    download(`${address}/dists/${suite}/InRelease`),
    download(`${address}/dists/${suite}/${index}`),
  ])
  checkSignature(release, keyring)
  const vouched = new RegExp(`^ ${sha256(packages)} +\\d+ ${index}$`, 'm')
  if (!vouched.test(release.toString())) throw new Error(`${suite}'s Packages.gz is not the one that InRelease names`)
  const all = `\n\n${gunzipSync(packages).toString('latin1')}\n\n`
  return (name) => {
    const begin = all.indexOf(`\n\nPackage: ${name}\n`)
    if (begin < 0) return undefined
    const stanza = all.slice(begin + 2, all.indexOf('\n\n', begin + 2))
    return {
      name,
      version: fieldOf(stanza, 'Version'),
      url: `${address}/${fieldOf(stanza, 'Filename')}`,
      sha256: fieldOf(stanza, 'SHA256'),
      needs: needsOf(stanza),
    }
  }
}
