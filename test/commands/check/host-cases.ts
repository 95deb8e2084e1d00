import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeSelfSigned } from '../../../src/listen/self-signed.ts'
import { prepareSite } from '../../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../../support/certificate.ts'
import { closeLater } from '../../support/cleanup.ts'
import { HASHED_PASSWORD } from '../../support/sidecar.ts'
import { needs } from '../../support/tools.ts'
import type { Case } from './case.ts'

const YEAR = 31_557_600_000

/** Stores a pair where Postern keeps its own. */
function storePair(stateDir: string, { cert, key }: { readonly cert: string; readonly key: string }): string {
  mkdirSync(join(stateDir, 'tls'), { recursive: true })
  writeFileSync(join(stateDir, 'tls', 'key.pem'), key, { mode: 0o600 })
  const file = join(stateDir, 'tls', 'cert.pem')
  writeFileSync(file, cert)
  return file
}

/** A port of 127.0.0.1 that a server holds. */
async function takenPort(reusePort = false): Promise<number> {
  const holder = createServer().listen({ port: 0, host: '127.0.0.1', reusePort })
  await once(holder, 'listening')
  closeLater(() => void holder.close())
  return (holder.address() as AddressInfo).port
}

/** Another sidecar beside `postern.yaml` of this host, with this configuration. */
function neighbour(text: string) {
  const folder = temporaryDirectory()
  mkdirSync(join(folder, 'devices'))
  const other = join(folder, 'devices', 'pump.yaml')
  writeFileSync(other, text)
  const file = join(folder, 'postern.yaml')
  return { other, asked: { file, places: { defaultConfig: file } } }
}

const configuration = (address: string): string =>
  JSON.stringify({
    upstream: { url: 'http://127.0.0.1' },
    password: { file: 'x' },
    listen: { address },
    admin: { address: '127.0.0.1:0' },
  })

const PASSWORDS: readonly Case[] = [
  {
    part: 'password',
    title: 'a password that the device checks',
    given: () => ({
      set: ['password.device=true', 'upstream.auth={kind: basic, user: admin}'],
      says: 'the device, which checks the password of every grant',
    }),
  },
  {
    part: 'password',
    row: 'readable',
    title: 'a readable password file',
    given: () => ({ says: 'readable' }),
  },
  {
    part: 'password',
    title: 'H108 no password file',
    given: () => ({
      set: ['password.file=/nowhere'],
      says: 'password.file: /nowhere: there is no such file',
      means: 'serve does not start, because no client could get a token',
      remedy: 'postern hash-password > /nowhere writes a usable one',
      exitCode: 2,
    }),
  },
  {
    part: 'password',
    row: 'absent',
    title: 'a locked account',
    given: ({ file }) => ({
      set: [
        `passwords=${JSON.stringify([
          { name: 'admin', file: file('admin', HASHED_PASSWORD) },
          {
            name: 'jo',
            shadow: { file: file('shadow', `jo:!${HASHED_PASSWORD}:1:0:99999:7:::\n`), user: 'jo' },
          },
        ])}`,
      ],
      says: /^jo: .*the account is locked$/,
      result: 'failed',
    }),
  },
  {
    part: 'password',
    row: 'twins',
    title: 'H195 two names with one password',
    given: ({ file }) => ({
      set: [
        `passwords=${JSON.stringify(
          ['admin', 'monitor'].map((name) => ({ name, file: file(name, 'one password\n') })),
        )}`,
      ],
      says: 'admin and monitor have the same password',
      remedy: 'change one of them',
      result: 'failed',
    }),
  },
  {
    part: 'live page',
    title: 'a page that others could open, without a password',
    given: () => ({
      set: ['admin.address=0.0.0.0:0'],
      name: 'live page',
      says: 'off: admin.address is not on loopback, and admin.password_file is not set',
    }),
  },
  {
    part: 'live page',
    row: 'readable',
    title: 'the password of the page',
    given: ({ file }) => ({
      set: [`admin.password_file=${file('page', HASHED_PASSWORD)}`],
      name: 'admin.password_file',
      says: 'readable',
    }),
  },
  {
    part: 'live page',
    title: 'H108 no file with the password of the page',
    given: () => ({
      set: ['admin.password_file=/nowhere'],
      says: '/nowhere: there is no such file',
      means: 'serve does not start: it cannot guard the live page',
      exitCode: 2,
    }),
  },
  {
    part: 'memory',
    row: 'planned',
    title: 'H248 what clients may hold',
    given: () => ({ set: ['listen.memory=64MiB'], says: /64 MiB/ }),
  },
]

const CERTIFICATES: readonly Case[] = [
  {
    part: 'certificate',
    title: 'cleartext',
    given: () => ({ says: 'off, the listener uses cleartext' }),
  },
  {
    part: 'certificate',
    row: 'missing',
    title: 'a pair that the first start makes',
    given: ({ directory }) => ({
      set: ['listen.tls=auto'],
      says: `self-signed, created at the first start in ${directory}/tls/cert.pem`,
    }),
  },
  {
    part: 'certificate',
    row: 'broken',
    title: 'half a pair of its own',
    given({ directory }) {
      const cert = storePair(directory, { ...makeSelfSigned('host', ['localhost'], Date.now()), key: '' })
      return {
        set: ['listen.tls=auto'],
        says: `${directory}/tls/key.pem is empty; a start sets this self-signed pair aside and makes another`,
        remedy: `restore the file, or give the clients the new ${cert} after the start`,
        result: 'warning',
      }
    },
  },
  {
    part: 'certificate',
    row: 'not yet valid',
    title: 'a pair of its own from the future: the clock is wrong',
    given({ directory }) {
      const pair = makeSelfSigned('host', ['localhost'], Date.now() + 2 * YEAR)
      storePair(directory, pair)
      return {
        set: ['listen.tls=auto'],
        says: /not valid before/,
        remedy: 'set the clock of this machine',
        result: 'failed',
      }
    },
  },
  {
    part: 'certificate',
    row: 'renewable',
    title: 'an expired pair of its own, which it leaves as it is',
    given({ directory }) {
      const pair = makeSelfSigned('host', ['localhost'], Date.now() - 50 * YEAR)
      const file = storePair(directory, pair)
      return {
        set: ['listen.tls=auto'],
        says: /expired/,
        remedy: 'start Postern, which renews it',
        result: 'warning',
        after: () => expect(readFileSync(file, 'utf8')).toBe(pair.cert),
      }
    },
  },
  {
    part: 'certificate',
    row: 'expiring',
    title: 'a configured pair at its end',
    async given() {
      const { certFile: cert, keyFile: key } = await makeCertificate('x', {
        notBefore: new Date(Date.now() - YEAR),
        notAfter: new Date(Date.now() + 86_400_000),
      })
      return { set: [`listen.tls=${JSON.stringify({ cert, key })}`], says: /expire/, result: 'warning' }
    },
  },
  {
    part: 'certificate',
    row: 'expired',
    title: 'an expired pair in the state folder that Postern did not make',
    async given({ directory }) {
      storePair(directory, await makeCertificate('x', { keyType: 'rsa', notAfter: new Date('2020-01-01') }))
      return {
        set: ['listen.tls=auto'],
        says: /expired/,
        remedy: `Postern did not make it: remove ${directory}/tls and start Postern, which makes a new one`,
        result: 'failed',
      }
    },
  },
  {
    part: 'certificate',
    row: 'no names',
    title: 'a certificate with a common name alone',
    given({ directory }) {
      needs('openssl')
      const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
      const files = ['-out', cert, '-keyout', key, '-subj', '/CN=localhost']
      execFileSync('openssl', ['req', '-x509', ...kind, ...files], { stdio: 'ignore' })
      return {
        set: [`listen.tls=${JSON.stringify({ cert, key })}`],
        says: `${cert} has no names (subjectAltName)`,
        result: 'warning',
      }
    },
  },
  {
    part: 'certificate',
    row: 'valid',
    title: 'the names and the end of a certificate',
    async given() {
      const { certFile: cert, keyFile: key } = await makeCertificate('x', {
        notAfter: new Date('2090-01-01'),
      })
      return {
        set: [`listen.tls=${JSON.stringify({ cert, key })}`],
        says: `${cert} matches its key; for localhost, 127.0.0.1; valid until 2090-01-01T00:00:00.000Z`,
      }
    },
  },
  {
    part: 'certificate',
    title: "H108 certificate and key in each other's place",
    async given() {
      const { certFile: key, keyFile: cert } = await makeCertificate()
      return {
        set: [`listen.tls=${JSON.stringify({ cert, key })}`],
        says: `listen.tls: ${cert} holds the private key and ${key} the certificate: swap the two`,
        exitCode: 2,
      }
    },
  },
]

const STATE_FOLDERS: readonly Case[] = [
  {
    part: 'state folder',
    row: 'writable',
    title: 'a state folder',
    given: ({ directory }) => ({ says: `${directory} is writable` }),
  },
  {
    part: 'state folder',
    row: 'missing',
    title: 'a state folder that the first start makes',
    given: ({ directory }) => ({
      set: [`state_dir=${directory}/state`],
      says: `${directory}/state is created at the first start`,
      after: () => expect(readdirSync(directory)).toEqual(['password']),
    }),
  },
  {
    part: 'state folder',
    row: 'without its parent',
    title: 'a state folder whose parent does not exist',
    given: ({ directory }) => ({
      set: [`state_dir=${directory}/a/b`],
      says: `${directory}/a does not exist`,
      remedy: `mkdir -p ${directory}/a`,
      result: 'warning',
    }),
  },
  {
    part: 'state folder',
    row: 'closed',
    title: 'H108 a state folder below a file',
    given({ file }) {
      const below = file('file', '')
      return {
        set: [`state_dir=${below}/state`],
        says: `${below} is not a folder`,
        means: 'a restart loses all tokens, and postern status and revoke do not work',
        result: 'failed',
      }
    },
  },
  {
    part: 'state folder',
    row: 'closed to a new certificate',
    title: 'H108 the same, where a start has to store its certificate',
    given({ file }) {
      const below = file('file', '')
      return {
        set: [`state_dir=${below}/state`, 'listen.tls=auto'],
        says: `${below} is not a folder`,
        means: 'serve does not start: it cannot store the self-signed certificate',
        exitCode: 2,
      }
    },
  },
  {
    part: 'state folder',
    row: 'too long',
    title: 'a state folder whose path is too long for the control socket',
    given: ({ directory }) => ({
      set: [`state_dir=${join(directory, 'x'.repeat(90))}`],
      says: /^status, explain, issue and revoke will not work: .*at most 107 bytes$/,
      result: 'failed',
    }),
  },
]

const ADDRESSES: readonly Case[] = [
  {
    part: 'address',
    row: 'free',
    title: 'H106 a free port',
    given: () => ({ name: 'listen.address', says: /^127\.0\.0\.1:\d+ is free$/ }),
  },
  {
    part: 'address',
    row: 'shared',
    title: 'H106 a port that sidecars share',
    async given() {
      const at = `127.0.0.1:${await takenPort(true)}`
      return {
        set: [`listen.address=${at}`, 'listen.reuse_port=true', 'tokens.store=valkey://127.0.0.1'],
        says: `${at} is shared with programs of the same user, as listen.reuse_port permits`,
      }
    },
  },
  {
    part: 'address',
    row: 'creatable',
    title: 'H106 a path for a socket',
    given: ({ directory }) => ({
      set: [`listen.address=unix:${directory}/public.sock`],
      says: `${directory}/public.sock can be created`,
    }),
  },
  {
    part: 'address',
    title: 'H108 a path for a socket without its folder',
    given: () => ({
      set: ['listen.address=unix:/nowhere/public.sock'],
      says: /^cannot listen on .*: there is no folder \/nowhere$/,
      result: 'failed',
    }),
  },
  {
    part: 'address',
    title: 'H108 a file in place of a socket',
    given: ({ file }) => ({
      set: [`admin.address=unix:${file('file', '')}`],
      name: 'admin.address',
      says: /: it exists and is not a socket$/,
      result: 'failed',
    }),
  },
  {
    part: 'address',
    row: 'passed',
    title: 'a descriptor',
    given: () => ({
      set: ['listen.address=fd:3'],
      says: 'descriptor 3, which the service manager passes at the start',
    }),
  },
  {
    part: 'address',
    row: 'own',
    title: 'H106 the port of the running sidecar on the same state_dir',
    async given() {
      const site = await prepareSite()
      const at = new URL((await site.serve()).url).host
      return {
        set: [`listen.address=${at}`, `state_dir=${site.stateDir}`],
        says: `${at} is in use by the running Postern of ${site.stateDir}, as it should be`,
      }
    },
  },
  {
    part: 'address',
    row: 'own',
    title: 'H106 the same written as every address',
    async given() {
      const site = await prepareSite()
      const { port } = new URL((await site.serve()).url)
      return {
        set: [`listen.address=0.0.0.0:${port}`, `state_dir=${site.stateDir}`],
        says: /^0\.0\.0\.0:\d+ is in use by the running Postern/,
      }
    },
  },
  {
    part: 'address',
    row: 'own',
    title: 'H106 the socket of the running sidecar on the same state_dir',
    async given({ directory }) {
      const path = join(directory, 'public.sock')
      const site = await prepareSite({ config: { listen: { address: `unix:${path}` } } })
      await site.launch().waitForLog('listening')
      return {
        set: [`listen.address=unix:${path}`, `state_dir=${site.stateDir}`],
        says: /public\.sock is in use by the running Postern/,
      }
    },
  },
  {
    part: 'address',
    title: 'H106 the port of another program on another address than the running sidecar has',
    async given() {
      const site = await prepareSite()
      const { port } = new URL((await site.serve()).url)
      const holder = createServer().listen(Number(port), '127.0.0.2')
      closeLater(() => void holder.close())
      await once(holder, 'listening')
      return {
        set: [`listen.address=127.0.0.2:${port}`, `state_dir=${site.stateDir}`],
        says: /^cannot listen on 127\.0\.0\.2:\d+: the port is in use \(EADDRINUSE\)$/,
        result: 'failed',
      }
    },
  },
  {
    part: 'address',
    title: 'H106 the socket of another program',
    async given({ directory }) {
      const path = join(directory, 'taken.sock')
      const holder = createServer().listen(path)
      closeLater(() => void holder.close())
      await once(holder, 'listening')
      return {
        set: [`admin.address=unix:${path}`],
        name: 'admin.address',
        says: `cannot listen on unix:${path}: the socket is in use by another program (EADDRINUSE)`,
        remedy: new RegExp(`ss -lxp src ${path}`),
        result: 'failed',
      }
    },
  },
  {
    part: 'address',
    title: 'H106 the port of another program',
    async given() {
      const port = await takenPort()
      return {
        set: [`listen.address=127.0.0.1:${port}`],
        says: `cannot listen on 127.0.0.1:${port}: the port is in use (EADDRINUSE)`,
        means: 'serve does not start',
        remedy: `ss -tanp 'sport = :${port}' shows by what: stop that program, wait a minute if it is only TIME-WAIT, or use another port`,
        result: 'failed',
      }
    },
  },
  {
    part: 'address',
    row: 'absent',
    title: 'an address that this machine does not have, for clients',
    given: () => ({
      set: ['listen.address=192.0.2.1:8443'],
      says: /this machine has no address 192\.0\.2\.1/,
      means: 'serve waits until it has the address, and no client can connect meanwhile',
      result: 'failed',
    }),
  },
  {
    part: 'address',
    row: 'absent',
    title: 'the same for programs',
    given: () => ({
      set: ['admin.address=192.0.2.1:9464'],
      name: 'admin.address',
      says: /this machine has no address 192\.0\.2\.1/,
      means: 'serve waits until it has the address, and no program can ask the sidecar there meanwhile',
      result: 'failed',
    }),
  },
]

const NEIGHBOURS: readonly Case[] = [
  {
    part: 'other instances',
    row: 'apart',
    title: 'H324 another sidecar with addresses of its own',
    given: () => ({
      ...neighbour(configuration('127.0.0.1:18501')),
      says: 'none has an address of this one: pump',
    }),
  },
  {
    part: 'other instances',
    row: 'shared',
    title: 'H324 another sidecar with the same address',
    given() {
      const { asked, other } = neighbour(configuration('0.0.0.0:18501'))
      return {
        asked,
        set: ['listen.address=127.0.0.1:18501'],
        says: `listen.address 127.0.0.1:18501 is also listen.address in ${other}`,
        remedy: 'give one of them another port',
        result: 'warning',
      }
    },
  },
  {
    part: 'other instances',
    row: 'unknown',
    title: 'H324 another sidecar whose file has a mistake',
    given() {
      const { asked, other } = neighbour('listen: [')
      return { asked, says: `the addresses in ${other} are not known`, result: 'warning' }
    },
  },
  {
    part: 'other instances',
    row: 'unread',
    title: 'H324 a folder of others that is none',
    given({ file }) {
      const folder = file('devices', '')
      const own = file('postern.yaml', '')
      return {
        asked: { file: own, places: { defaultConfig: own } },
        says: `cannot read the folder ${folder} (ENOTDIR)`,
        result: 'warning',
      }
    },
  },
]

export const HOST_CASES: readonly Case[] = [
  ...PASSWORDS,
  ...CERTIFICATES,
  ...STATE_FOLDERS,
  ...ADDRESSES,
  ...NEIGHBOURS,
]
