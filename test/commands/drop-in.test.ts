import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { runInProcess } from '../process/in-process.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const BEHIND_SOCKET = 'listen: {address: fd:3}\npassword: {file: /etc/postern/password}\n'

let folder: string
let config: string

beforeEach(() => {
  folder = temporaryDirectory()
  config = join(folder, 'postern.yaml')
})

function dropIn(yaml: string) {
  writeFileSync(config, BEHIND_SOCKET + yaml)
  return runInProcess(['init', '--drop-in', '--config', config])
}

/** What systemd would read: no comments. */
const settings = (text: string): readonly string[] => text.match(/^[^#\n].*$/gm) ?? []

/** The sentences of the comments, each on one line. */
const said = (text: string): string => (text.match(/^# .*$/gm) ?? []).map((line) => line.slice(2)).join(' ')

/** The nameservers of this machine, as the drop-in allows them. */
const DNS = [...readFileSync('/etc/resolv.conf', 'utf8').matchAll(/^nameserver\s+(\S+)/gm)]
  .map(([, address = '']) => address)
  .filter((address) => !/^(?:127\.|::1$)/.test(address))
  .map((address) => `IPAddressAllow=${address}`)

it('H345 allows loopback, each service of the device, each server of the store and DNS, and nothing else', async () => {
  const { code, stdout, stderr } = await dropIn(`
upstream: {url: 'http://192.0.2.10:81', routes: {/live: {url: 'https://[2001:db8::7]'}, /own: {url: http+unix:/run/own.sock}}}
tokens: {store: 'valkeys://postern:geheim@[::ffff:192.0.2.20]:6390/1'}
`)
  expect([code, stderr]).toEqual([0, ''])
  expect(settings(stdout)).toEqual([
    '[Service]',
    'IPAddressDeny=any',
    'IPAddressAllow=localhost',
    'IPAddressAllow=192.0.2.10',
    'IPAddressAllow=2001:db8::7',
    'IPAddressAllow=192.0.2.20',
    ...DNS,
  ])
  expect(stdout).toMatch(/^# \/etc\/systemd\/system\/postern\.service\.d\/addresses\.conf$/m)
  expect(stdout).toContain('# upstream.routes./live.url\nIPAddressAllow=2001:db8::7\n')
  expect(stdout).not.toMatch(/geheim/)
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
})

it('H345 needs no line for what is on this machine', async () => {
  const { code, stdout, stderr } = await dropIn(
    'upstream: {url: http://localhost:8080, routes: {/live: {url: http://127.0.0.9}}}\ntokens: {store: valkey+unix:/run/valkey.sock}\n',
  )
  expect([code, stderr]).toEqual([0, ''])
  expect(settings(stdout)).toEqual(['[Service]', 'IPAddressDeny=any', 'IPAddressAllow=localhost', ...DNS])
})

it('H346 leaves out a name, says so, and exits with 1', async () => {
  const { code, stdout, stderr } = await dropIn(
    'upstream: {url: http://device.invalid}\ntokens: {store: valkey://192.0.2.20}\n',
  )
  expect([code, stderr]).toEqual([
    1,
    'postern init: left out: upstream.url: device.invalid is a name, and systemd filters addresses. It has no address now: write IPAddressAllow= with those that it will have.\n',
  ])
  expect(said(stdout)).toContain('Left out: upstream.url: device.invalid is a name')
  expect(settings(stdout)).toContain('IPAddressAllow=192.0.2.20')
  expect(said(stdout)).not.toContain('this may go')
})

it('H346 leaves out the admin page and Prometheus over the network, but not this machine itself', async () => {
  const { code, stdout, stderr } = await dropIn(
    "upstream: {url: http://192.0.2.10}\nadmin: {address: '10.0.0.10:9464', allow: [10.0.0.5, 'fd00::/8']}\n",
  )
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^postern init: left out: admin\.address: 10\.0\.0\.10:9464 is a socket of the service's own/,
  )
  expect(settings(stdout)).toContain('IPAddressAllow=10.0.0.10')
  expect(settings(stdout)).not.toContain('IPAddressAllow=10.0.0.5')
  expect(stdout).toContain('\n#IPAddressAllow=10.0.0.5\n#IPAddressAllow=fd00::/8\n')
  // `postern healthy` asks a listener on every address on loopback.
  for (const address of ['0.0.0.0', '[::]', '[0:0:0:0:0:0:0:0]', '[::ffff:0.0.0.0]']) {
    const every = await dropIn(`upstream: {url: http://192.0.2.10}\nadmin: {address: '${address}:9464'}\n`)
    expect([address, every.code, settings(every.stdout).length]).toEqual([address, 1, 4 + DNS.length])
  }
})

it('H346 names what no configuration says: a new address by DHCP, an admin page over the network', async () => {
  const { stdout } = await dropIn('upstream: {url: http://192.0.2.10}\n')
  expect(said(stdout)).toMatch(/Left out: The admin page, or a Prometheus, over the network: .* by DHCP/)
})

it.each(['0.0.0.0:8443', "'[::]:8443'", '192.0.2.1:443'])(
  'H346 prints nothing where clients would be shut out: listen.address: %s',
  async (address) => {
    writeFileSync(
      config,
      `listen: {address: ${address}}\npassword: {file: /p}\nupstream: {url: http://192.0.2.10}\n`,
    )
    const { code, stdout, stderr } = await runInProcess(['init', '--drop-in', '--config', config])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      `postern init: ${config}:1: listen.address: ${address.replaceAll("'", '')} is a socket of the service's own, so the drop-in would shut out its clients; set it to fd:3 and start postern.socket, whose connections are exempt\n`,
    )
  },
)

it('H346 prints nothing where clients would be shut out of the port that leads to https', async () => {
  const listen = '{address: fd:3, redirect: 0.0.0.0:80}'
  writeFileSync(config, `listen: ${listen}\npassword: {file: /p}\nupstream: {url: http://192.0.2.10}\n`)
  const { code, stdout, stderr } = await runInProcess(['init', '--drop-in', '--config', config])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(
    /listen\.redirect: 0\.0\.0\.0:80 is a socket .* set it to fd:4 and start postern\.socket/,
  )
})

it.each(['127.0.0.1:8443', 'unix:/run/postern.sock'])(
  'H345 a proxy on this machine needs no postern.socket: %s',
  async (address) => {
    writeFileSync(
      config,
      `listen: {address: '${address}'}\npassword: {file: /p}\nupstream: {url: http://192.0.2.10}\n`,
    )
    const { code, stdout } = await runInProcess(['init', '--drop-in', '--config', config])
    expect(code).toBe(0)
    expect(said(stdout)).toContain(`Clients connect to ${address}, which stays open.`)
  },
)

it('H345 is for the unit of an instance, too', async () => {
  const places = { defaultConfig: config, defaultState: join(folder, 'state') }
  mkdirSync(join(folder, 'devices'))
  writeFileSync(join(folder, 'devices/boiler.yaml'), `${BEHIND_SOCKET}upstream: {url: http://192.0.2.11}\n`)
  const { code, stdout } = await runInProcess(['init', '--drop-in', '--instance', 'boiler'], places)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^# \/etc\/systemd\/system\/postern-device@boiler\.service\.d\/addresses\.conf$/m)
  expect(settings(stdout)).toContain('IPAddressAllow=192.0.2.11')
})

it.each<readonly [string, readonly string[], RegExp]>([
  ['no configuration', [], /^postern init: no configuration file is named, .* name one with --config/],
  ['a file that is missing', ['--config', '/nowhere.yaml'], /^postern init: .*\/nowhere\.yaml/],
  ['an instance that is unknown', ['--instance', 'boiler'], /^postern init: --instance: no .*boiler\.yaml/],
])('H346 with %s exits with 2 and says what would do', async (_what, flags, says) => {
  const places = { defaultConfig: join(folder, 'none.yaml'), defaultState: folder }
  const { code, stdout, stderr } = await runInProcess(['init', '--drop-in', ...flags], places)
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(says)])
})

it('H346 refuses flags that only write a configuration', async () => {
  for (const flags of [['--url', 'http://192.0.2.7'], ['--weak'], ['--user', 'jo'], ['--skip-checks']]) {
    expect(await runInProcess(['init', '--drop-in', ...flags])).toMatchObject({ code: 2, stdout: '' })
  }
})
