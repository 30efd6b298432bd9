/**
 * Programs of any Debian suite in a folder of their own: no root, no apt. Unpacked into a cache that is kept between runs;
 * with libraries, they are run by their own loader, so that an older system runs programs built for a newer one.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { type Archive, type DebianPackage, debian, download, readSuite, sha256 } from './debian-archive.ts'

export interface Wanted {
  /** Tried in turn. */
  readonly suites: readonly string[]
  readonly packages: readonly string[]
  /** Also the shared libraries, for programs that are not linked statically. */
  readonly libraries?: boolean
  /** Of the programs only these are kept. */
  readonly programs: readonly string[]
}

/** Where it comes from and where it stays; in tests of this file, not the real ones. */
export interface Place {
  readonly archive: () => Archive
  readonly cache: string
}

export interface Unpacked {
  readonly folder: string
  /** Of the first package: `20.2.4`. */
  readonly version: string
  /** The command line that runs a program with these arguments. */
  command(program: string, args: readonly string[]): [string, string[]]
}

const run = promisify(execFile)
const TRIPLETS: Readonly<Record<string, string>> = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }
const LOADERS: Readonly<Record<string, string>> = { x64: 'ld-linux-x86-64.so.2', arm64: 'ld-linux-aarch64.so.1' }
const PROGRAM_FOLDERS = ['usr/bin', 'usr/sbin', 'bin', 'sbin']
const UNREAD = ['doc', 'man', 'locale', 'icu', 'lintian'].map((folder) => `usr/share/${folder}`)
/** Its last file: a folder without it was not finished. Holds the packages with their versions. */
const FINISHED = '.finished'
const DOWNLOADS_AT_ONCE = 8

/** Where the libraries of this architecture are, inside an unpacked folder. */
export const librariesIn = (folder: string): string => join(folder, 'usr/lib', TRIPLETS[process.arch]!)

const cacheFolder = (): string =>
  process.env['HOLDFAST_TEST_CACHE'] ||
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'holdfast-test-servers')

/** The packages with, if asked, every library that they need, and that those need. */
const withLibraries = (
  find: (name: string) => DebianPackage | undefined,
  { packages, libraries = false }: Wanted,
): DebianPackage[] => {
  const chosen = new Map<string, DebianPackage>()
  const isLibrary = (name: string): boolean => /^(lib|zlib1g)/.test(name) && !/^lib(python|perl|pam)/.test(name)
  const add = (name: string): void => {
    const found = chosen.has(name) ? undefined : find(name)
    if (found === undefined) return
    chosen.set(name, found)
    if (libraries) for (const need of found.needs) if (isLibrary(need)) add(need)
  }
  for (const name of packages) {
    add(name)
    if (!chosen.has(name)) throw new Error(`there is no package ${name}`)
  }
  return [...chosen.values()]
}

const unpack = async (file: string, folder: string): Promise<void> => {
  try {
    await run('dpkg-deb', ['-x', file, folder])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // A system without dpkg: a .deb is an `ar` archive with a tar in it.
    const { stdout } = await run('ar', ['t', file])
    const data = stdout.split('\n').find((name) => name.startsWith('data.tar'))!
    const filter = { xz: '-J', zst: '--zstd', gz: '-z' }[data.slice('data.tar.'.length)] ?? '-a'
    await run('sh', ['-c', 'ar p "$1" "$2" | tar -x "$3" -C "$4"', 'sh', file, data, filter, folder])
  }
}

const fetchInto = async (folder: string, suite: string, wanted: Wanted, archive: Archive): Promise<void> => {
  const packages = withLibraries(await readSuite(suite, archive), wanted)
  mkdirSync(folder, { recursive: true })
  const waiting = [...packages]
  const fetchInTurn = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const bytes = await download(next.url)
      if (sha256(bytes) !== next.sha256) throw new Error(`${basename(next.url)} is not the one that the index names`)
      const file = join(folder, basename(next.url))
      writeFileSync(file, bytes)
      await unpack(file, folder)
      rmSync(file)
    }
  }
  await Promise.all(Array.from({ length: DOWNLOADS_AT_ONCE }, fetchInTurn))
  for (const unread of UNREAD) rmSync(join(folder, unread), { recursive: true, force: true })
  for (const programs of PROGRAM_FOLDERS.map((name) => join(folder, name)).filter((path) => existsSync(path)))
    for (const name of readdirSync(programs))
      if (!wanted.programs.includes(name)) rmSync(join(programs, name), { recursive: true, force: true })
  writeFileSync(join(folder, FINISHED), packages.map(({ name, version }) => `${name} ${version}\n`).join(''))
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** What a run that was killed has left behind. */
const sweep = (cache: string): void => {
  for (const name of readdirSync(cache)) {
    const unfinished = /\.unfinished-(\d+)$/.exec(name)
    if (unfinished && !isAlive(Number(unfinished[1]))) rmSync(join(cache, name), { recursive: true, force: true })
  }
}

/** Fetched beside its place and renamed, so that neither another run nor a later one sees half of it. */
const fetched = async (folder: string, suite: string, wanted: Wanted, { archive, cache }: Place): Promise<string> => {
  mkdirSync(cache, { recursive: true })
  sweep(cache)
  const fresh = `${folder}.unfinished-${process.pid}`
  try {
    await fetchInto(fresh, suite, wanted, archive())
    // Nobody but us would have left a folder that is not finished; it has no use.
    if (!existsSync(join(folder, FINISHED))) rmSync(folder, { recursive: true, force: true })
    if (!existsSync(folder)) renameSync(fresh, folder)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return folder
}

/** Being fetched by this process: two who want the same wait for one. */
const underWay = new Map<string, Promise<string>>()

const cached = async (name: string, suite: string, wanted: Wanted, place: Place): Promise<string> => {
  const folder = join(place.cache, `${name}-${suite}`)
  if (existsSync(join(folder, FINISHED))) return folder
  const begun = underWay.get(folder) ?? fetched(folder, suite, wanted, place).finally(() => underWay.delete(folder))
  underWay.set(folder, begun)
  return begun
}

const unpackedIn = (folder: string, { libraries = false }: Wanted): Unpacked => {
  const [first] = readFileSync(join(folder, FINISHED), 'utf8').split('\n')
  const loader = join(librariesIn(folder), LOADERS[process.arch]!)
  const paths = [librariesIn(folder), join(librariesIn(folder), 'ceph'), join(folder, 'usr/lib')].join(':')
  return {
    folder,
    version: /(?:\d+:)?(\d+(?:\.\d+)*)/.exec(first!.split(' ')[1]!)![1]!,
    command(program, args) {
      const path = PROGRAM_FOLDERS.map((name) => join(folder, name, program)).find((path) => existsSync(path))
      if (path === undefined) throw new Error(`there is no ${program} in ${folder}`)
      return libraries ? [loader, ['--library-path', paths, path, ...args]] : [path, [...args]]
    },
  }
}

export const debianPackages = async (
  name: string,
  wanted: Wanted,
  place: Place = { archive: debian, cache: cacheFolder() },
): Promise<Unpacked> => {
  const reasons: string[] = []
  for (const suite of wanted.suites) {
    try {
      return unpackedIn(await cached(name, suite, wanted, place), wanted)
    } catch (error) {
      reasons.push(`${suite}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw new Error(`${name} could not be had from Debian's archive (${reasons.join('; ')})`)
}
