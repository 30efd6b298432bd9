/** The cache of unpacked programs, on an archive of one package that is made here. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { sha256 } from './debian-archive.ts'
import { debianPackages, type Place } from './debian-packages.ts'

const WANTED = { suites: ['test'], packages: ['greeter'], programs: ['greet'] }
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
const index = `/dists/test/main/binary-${architecture}/Packages.gz`
const hasDpkg = spawnSync('dpkg-deb', ['--version']).status === 0

const withDpkg = (sentence: string, run: () => Promise<void>): void =>
  test(sentence, async (context) => (hasDpkg ? run() : context.skip('dpkg-deb, which makes the package, is missing')))

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const buildPackage = (): Buffer => {
  const folder = newFolder()
  const root = join(folder, 'root')
  mkdirSync(join(root, 'DEBIAN'), { recursive: true })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  const control = 'Package: greeter\nVersion: 1:7.2.1-3\nArchitecture: all\nMaintainer: none\nDescription: says hello\n'
  writeFileSync(join(root, 'DEBIAN/control'), control)
  for (const program of ['greet', 'insult']) {
    writeFileSync(join(root, 'usr/bin', program), '#!/bin/sh\necho hello\n')
    chmodSync(join(root, 'usr/bin', program), 0o755)
  }
  execFileSync('dpkg-deb', ['--build', '--root-owner-group', root, join(folder, 'greeter.deb')])
  return readFileSync(join(folder, 'greeter.deb'))
}

/** Serves what is in `files`, and says what was asked for. */
const archive = async () => {
  const bytes = buildPackage()
  const stanza = `Package: greeter\nVersion: 1:7.2.1-3\nFilename: pool/greeter.deb\nSHA256: ${sha256(bytes)}\n`
  const packages = gzipSync(`Package: other\nVersion: 1\n\n${stanza}\n`)
  const release = Buffer.from(`SHA256:\n ${sha256(packages)} 1 ${index.replace('/dists/test/', '')}\n`)
  const files = new Map([
    ['/dists/test/InRelease', release],
    [index, packages],
    ['/pool/greeter.deb', bytes],
  ])
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    const file = files.get(request.url!)
    if (file) response.end(file)
    else response.writeHead(404).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const place: Place = { archive: () => ({ address, keyring: '/there/is/none' }), cache: join(newFolder(), 'cache') }
  return { files, asked, address, place }
}

withDpkg('a program is fetched once, and nothing that was not wanted is kept', async () => {
  const { asked, place } = await archive()
  const unpacked = await debianPackages('greeter', WANTED, place)
  expect(unpacked.version).toBe('7.2.1')
  expect(execFileSync(...unpacked.command('greet', [])).toString()).toBe('hello\n')
  expect(existsSync(join(unpacked.folder, 'usr/bin/insult'))).toBe(false)
  const before = asked.length
  expect((await debianPackages('greeter', WANTED, place)).folder).toBe(unpacked.folder)
  expect(asked.length).toBe(before)
})

withDpkg('two who want the same at once fetch it once', async () => {
  const { asked, place } = await archive()
  await Promise.all([debianPackages('greeter', WANTED, place), debianPackages('greeter', WANTED, place)])
  expect(asked.filter((path) => path.startsWith('/pool/'))).toHaveLength(1)
})

withDpkg('a folder that was not finished is fetched again', async () => {
  const { place } = await archive()
  const folder = join(place.cache, 'greeter-test')
  mkdirSync(join(folder, 'usr/bin'), { recursive: true })
  writeFileSync(join(folder, 'usr/bin/greet'), 'half of a prog')
  const unpacked = await debianPackages('greeter', WANTED, place)
  expect(execFileSync(...unpacked.command('greet', [])).toString()).toBe('hello\n')
})

withDpkg('what a killed run left behind is removed, what a living one is making stays', async () => {
  const { place } = await archive()
  const dead = join(place.cache, 'greeter-test.unfinished-4194305')
  const living = join(place.cache, `other-test.unfinished-${process.ppid}`)
  for (const folder of [dead, living]) mkdirSync(folder, { recursive: true })
  await debianPackages('greeter', WANTED, place)
  expect(readdirSync(place.cache).sort()).toEqual(['greeter-test', `other-test.unfinished-${process.ppid}`])
})

withDpkg('a package that is not the one in the index is refused, and leaves nothing', async () => {
  const { files, place } = await archive()
  files.set('/pool/greeter.deb', Buffer.concat([files.get('/pool/greeter.deb')!, Buffer.from('x')]))
  await expect(debianPackages('greeter', WANTED, place)).rejects.toThrow(
    'greeter.deb is not the one that the index names',
  )
  expect(readdirSync(place.cache)).toEqual([])
})

withDpkg('an index that the release does not vouch for is refused', async () => {
  const { files, place } = await archive()
  files.set(index, gzipSync('Package: greeter\n'))
  await expect(debianPackages('greeter', WANTED, place)).rejects.toThrow('is not the one that InRelease names')
})

withDpkg('a release without a signature is refused where signatures can be checked', async () => {
  const { place } = await archive()
  const keyring = join(newFolder(), 'keyring.gpg')
  writeFileSync(keyring, '')
  if (spawnSync('gpgv', ['--version']).status !== 0) return
  const strict: Place = { ...place, archive: () => ({ ...place.archive(), keyring }) }
  await expect(debianPackages('greeter', WANTED, strict)).rejects.toThrow("the archive's signature does not hold")
})

test('an archive that cannot be reached is named as the reason', async () => {
  const place: Place = {
    archive: () => ({ address: 'http://127.0.0.1:1', keyring: '' }),
    cache: join(newFolder(), 'cache'),
  }
  await expect(debianPackages('greeter', WANTED, place)).rejects.toThrow(
    "greeter could not be had from Debian's archive (test: fetch failed)",
  )
})
