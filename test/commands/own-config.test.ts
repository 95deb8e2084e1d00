import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { shippedArguments } from '../build/shipped.ts'
import { runInProcess, type Surroundings } from '../process/in-process.ts'
import { ENV, prepareSite, readLog, runPostern, type Site } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

const { POSTERN_CONFIG: _, ...env } = ENV
const user = process.getuid?.() ?? expect.fail('no user')

/** Runs a command in a folder, as a user. */
const runIn = (folder: string, args: readonly string[], around: Surroundings = {}) =>
  runInProcess(args, { env, folder, user, defaultConfig: '/nowhere/postern.yaml', ...around })

const reading = (command: string, { configFile }: Site): string =>
  `postern ${command}: the configuration is ${configFile}\n`

it('H367 no command needs --config in a folder with postern.yaml, and each names the file', async () => {
  const site = await prepareSite()
  const served = await site.serveHere()
  await served.grant()
  for (const args of [
    ['status'],
    ['check'],
    ['healthy', '--admin', served.adminUrl],
    ['explain'],
    ['retry'],
  ]) {
    const [command = ''] = args
    const { code, stderr } = await runIn(site.directory, args)
    expect([args, code, stderr]).toEqual([args, 0, args.length > 1 ? '' : reading(command, site)])
  }
  const issued = await runIn(site.directory, ['issue', '--for', '1h'])
  expect(issued.stderr).toContain(reading('issue', site))
  expect(issued.stderr).toMatch(/\n {2}postern revoke --grant \S+\n$/)
  expect(await runIn(site.directory, ['revoke', '--all'])).toMatchObject({ code: 0 })
  expect(await served.use('x')).toBe(401)
})

it('H367 another configuration that is named takes its place', async () => {
  const [own, other] = await Promise.all([prepareSite(), prepareSite()])
  const shown = async (args: readonly string[], more: object = {}) => {
    const { stdout, stderr } = await runIn(own.directory, ['check', '--json', ...args], more)
    return { state: JSON.parse(stdout).configuration.state_dir, stderr }
  }
  const named = { state: other.stateDir, stderr: '' }
  expect(await shown([])).toEqual({ state: own.stateDir, stderr: reading('check', own) })
  expect(await shown(['--config', other.configFile])).toEqual(named)
  expect(await shown([], { env: { ...env, POSTERN_CONFIG: other.configFile } })).toEqual(named)
  expect(await shown([], { defaultConfig: other.configFile })).toMatchObject({ state: own.stateDir })
  expect(await shown([], { defaultConfig: other.configFile, folder: temporaryDirectory() })).toEqual(named)
})

/** A group with no member on this machine, so that it is not the private one of the user. Only root can give it a file. */
const SOME_GROUP = 4711

it.each([
  ['the file, for its group', 'file', 0o660],
  ['the file, for everyone', 'file', 0o602],
  ['the folder, for its group', 'folder', 0o770],
  ['the folder, for everyone', 'folder', 0o1777],
])('H367 is refused if others may write %s', async (_what, which, mode) => {
  const site = await prepareSite()
  const path = which === 'file' ? site.configFile : site.directory
  if (user === 0) chownSync(path, user, SOME_GROUP)
  else if ((mode & 0o002) === 0) return
  chmodSync(path, mode)
  expect(await runIn(site.directory, ['check'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr:
      `postern check: ${site.configFile} is not used without --config: other users can write ${path}; ` +
      `name a file with --config, or chmod go-w ${path}\n`,
  })
  expect(await runIn(site.directory, ['check', '--config', site.configFile])).toMatchObject({ code: 0 })
  chmodSync(path, which === 'file' ? 0o644 : 0o755)
  expect(await runIn(site.directory, ['check'])).toMatchObject({ code: 0 })
})

it('H367 is used if only the private group of the user may write file and folder, as umask 002 makes them', async () => {
  const site = await prepareSite()
  chmodSync(site.configFile, 0o664)
  chmodSync(site.directory, 0o775)
  expect(await runIn(site.directory, ['check'])).toMatchObject({ code: 0 })
})

it.each(['file', 'folder'])('H367 is refused if the %s belongs to another user', async (which) => {
  const site = await prepareSite()
  const path = which === 'file' ? site.configFile : site.directory
  const other = user + 1
  const asOther = { user: other }
  if (user === 0) {
    // The owner is judged, and the user that runs the command may be any.
    expect(await runIn(site.directory, ['check'], asOther)).toMatchObject({ code: 0 })
    chownSync(path, 4711, 0)
    const { code, stderr } = await runIn(site.directory, ['check'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`: ${path} belongs to user 4711; name a file`),
    ])
    expect(stderr).toContain(`or chown 0 ${path}\n`)
    expect(await runIn(site.directory, ['check'], { user: 4711 })).toMatchObject({ code: 0 })
  } else expect(await runIn(site.directory, ['check'], asOther)).toMatchObject({ code: 2 })
})

it('H367 is refused if others may write a folder above, also one above the target of a link', async () => {
  const open = temporaryDirectory()
  const [inner, elsewhere] = [join(open, 'inner'), temporaryDirectory()]
  mkdirSync(inner)
  const site = await prepareSite()
  renameSync(site.configFile, join(inner, 'postern.yaml'))
  symlinkSync(join(inner, 'postern.yaml'), join(elsewhere, 'postern.yaml'))
  for (const mode of [0o777, 0o757]) {
    chmodSync(open, mode)
    for (const folder of [inner, elsewhere])
      expect(await runIn(folder, ['check'])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `${join(folder, 'postern.yaml')} is not used without --config: other users can write ${open}; `,
        ),
      })
  }
  for (const mode of [0o1777, 0o755]) {
    chmodSync(open, mode)
    for (const folder of [inner, elsewhere]) expect(await runIn(folder, ['check'])).toMatchObject({ code: 0 })
  }
})

it('H367 a link is judged by its target, and a folder of that name is no configuration', async () => {
  const site = await prepareSite()
  const folder = temporaryDirectory()
  symlinkSync(site.configFile, join(folder, 'postern.yaml'))
  expect(await runIn(folder, ['check'])).toMatchObject({ code: 0 })
  chmodSync(site.configFile, 0o666)
  expect(await runIn(folder, ['check'])).toMatchObject({ code: 2 })
  const other = temporaryDirectory()
  mkdirSync(join(other, 'postern.yaml'))
  expect(await runIn(other, ['check'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      'no configuration file is named, and there is neither a postern.yaml in this folder nor /nowhere/postern.yaml',
    ),
  })
})

it('H367 serve finds it under the permissions of the executable, and reloads it after a change', async () => {
  const site = await prepareSite()
  const [folder, above] = [temporaryDirectory(), temporaryDirectory()]
  const target = join(above, 'folder', 'target.yaml')
  mkdirSync(join(above, 'folder'))
  renameSync(site.configFile, target)
  symlinkSync(target, join(folder, 'postern.yaml'))
  // The umask 002 makes it so.
  chmodSync(folder, 0o775)
  const program = shippedArguments({ configuration: '/nowhere', state: '/nowhere' })
  const serve = () => {
    const child = spawn(process.execPath, [...program, 'serve'], {
      cwd: folder,
      env: { ...env, NODE_COMPILE_CACHE: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    closeLater(() => void child.kill('SIGKILL'))
    return child
  }
  chmodSync(above, 0o777)
  const refused = serve()
  expect(await text(refused.stderr)).toContain(`other users can write ${above}; name a file with --config`)
  chmodSync(above, 0o755)
  const child = serve()
  let said = ''
  child.stderr.on('data', (piece) => {
    said += piece
  })
  const log = readLog(child, Promise.resolve(''))
  await log.waitForLog('listening')
  expect(said).toContain(`postern serve: the configuration is ${join(folder, 'postern.yaml')}\n`)
  child.kill('SIGHUP')
  await log.waitForLog('configuration reloaded')
})

it('a folder that has been removed is no error of its own', async () => {
  const under = ['sh', '-c', 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$@"', 'sh']
  const { code, stderr } = await runPostern(['healthy', '--admin', '127.0.0.1:1'], { under })
  expect([code, stderr]).toEqual([1, expect.stringContaining('no sidecar is running there')])
})
