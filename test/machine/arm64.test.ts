import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { makeDebianPackage } from '../../deploy/build/debian.ts'
import { VERSION } from '../../src/version.ts'
import { missingInDepends } from '../build/library-needs.ts'
import { clientOf, readLog } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { run } from '../support/tools.ts'
import { installDebian, needsMachine } from './machine.ts'
import { executableFor } from './made-once.ts'

const EMULATOR = 'qemu-aarch64-static'

test('the arm64 package, with the libraries that it depends on, serves a request on an emulated processor', async () => {
  needsMachine(EMULATOR, 'chroot')
  const folder = temporaryDirectory()
  const executable = await executableFor('arm64')
  const parts = { executable, processor: 'arm64', licences: '', time: 1_700_000_000, folder } as const
  const file = await makeDebianPackage({ ...parts, version: VERSION, compression: 'gzip' })
  expect(await missingInDepends(executable)).toEqual([])
  const depends = (await run('dpkg-deb', ['--field', file, 'Depends'])).stdout
  const libraries = [...depends.matchAll(/(lib[\w+-]+) \(/g)].map(([, name]) => name)
  // Only unpacked: its scripts would have to run on the emulated processor.
  const flags = ['--architectures=arm64', '--variant=extract', `--include=${libraries.join(',')}`]
  const root = await installDebian(flags, join(folder, 'root'))
  expect(await run('dpkg-deb', ['--extract', file, root])).toMatchObject({ code: 0, stderr: '' })
  const { stdout: emulator } = await run('sh', ['-c', `command -v ${EMULATOR}`])
  copyFileSync(emulator.trim(), join(root, 'usr/bin', EMULATOR))
  writeFileSync(join(root, 'etc/postern/password'), `${PASSWORD}\n`, { mode: 0o600 })
  mkdirSync(join(root, 'var/lib/postern'), { mode: 0o700 }) // as postinst does
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n')
  const device = await startDevice()
  const configuration = join(root, 'etc/postern/postern.yaml')
  const shipped = readFileSync(configuration, 'utf8')
  writeFileSync(configuration, shipped.replace('http://192.0.2.10:80', device.url))
  const command = (...args: string[]): string[] => [root, `/usr/bin/${EMULATOR}`, '/usr/bin/postern', ...args]
  const named = ['--config', '/etc/postern/postern.yaml', '--set', 'listen.tls=off']
  const env = { PATH: process.env.PATH }

  expect(await run('chroot', command('--version'), { env })).toEqual({
    code: 0,
    stdout: `${VERSION}\n`,
    stderr: '',
  })

  // The restart with more permissions would start the program without the emulator.
  const checked = await run('chroot', command('check', ...named), {
    env: { ...env, NODE_OPTIONS: '--allow-fs-read=* --allow-fs-write=* --allow-worker' },
    timeout: 300_000,
  })
  expect(checked.stdout).toContain(`${device.url} answered 200`)
  expect(checked).toMatchObject({ code: 0, stderr: '' })

  const addresses = ['--set', 'listen.address=127.0.0.1:0', '--set', 'admin.address=off']
  const child = spawn('chroot', command('serve', ...named, ...addresses), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  })
  const exited = once(child, 'exit')
  closeLater(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const listening = await readLog(child, text(child.stderr)).waitForLog('listening')
  const client = clientOf(String(listening.public), 'off', 'http1', '/var/lib/postern')
  const { access_token: token } = await client.grant()
  expect(await client.use(token)).toBe(200)
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
}, 600_000)
