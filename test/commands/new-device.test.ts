import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { findLoginForm } from '../../src/commands/init/login-form.ts'
import { nextCommands } from '../../src/commands/next-commands.ts'
import { shippedConfiguration } from '../../src/config/first-configuration.ts'
import { loadConfig, readConfigFile } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import type { OwnResponse } from '../../src/device/own-request.ts'
import { runAtKeyboard, runInProcess, type Surroundings } from '../process/in-process.ts'
import { ENV } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { nextRequest, startRawDevice } from '../support/raw-device.ts'
import { HASHED_PASSWORD, startSidecar } from '../support/sidecar.ts'
import type { Session, Turn } from '../support/terminal.ts'
import { drip } from './drip.ts'

let folder: string
let config: string
let password: string

beforeEach(() => {
  folder = temporaryDirectory()
  config = join(folder, 'postern.yaml')
  password = join(temporaryDirectory(), 'password')
  writeFileSync(password, `${HASHED_PASSWORD}\n`, { mode: 0o600 })
})

const init = (url: string, ...args: string[]) =>
  runInProcess(['init', '--config', config, '--url', url, '--password-file', password, ...args])
const onTerminal = (url: string, ...dialogue: readonly Turn[]): Promise<Session> =>
  runAtKeyboard(['init', '--config', config, '--url', url], ...dialogue)
const written = (): Config => loadConfig({ file: readConfigFile(config), env: {}, sets: [] })

const AT_ONCE: Turn = ['At once [up to 4]: ', '\r']
const SECRET = 'correct horse'

const FORM = `<form name="f" method="post" action="/cgi-bin/login">
<input type="hidden" name="lang" value="en&amp;US"><input type="hidden" name="on">
<input name="user[name]" type="text"> <INPUT TYPE=password NAME=pw>
<input type=checkbox name=keep checked><input type=checkbox name=not>
<button name="go" value="1">Log in</button><input type=submit name=cancel value=2></form>`

/** A device with a login page, to which `/` leads a browser without a session. */
function startFormDevice(page = `<html><!-- <form method=post><input type=password> -->${FORM}`) {
  const bodies: string[] = []
  return startDevice(async (request, response) => {
    const signedIn = request.headers.cookie?.includes('SID=7') === true
    if (request.method === 'POST') {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      bodies.push(body)
      const isRight = new URLSearchParams(body).get('pw') === SECRET
      response.writeHead(302, { Location: '/', ...(isRight && { 'Set-Cookie': 'SID=7; Path=/' }) }).end()
    } else if (request.url === '/login.html') response.end(page)
    else if (signedIn) response.end('ok')
    else response.writeHead(302, { Location: '/login.html' }).end()
  }).then((device) => ({ ...device, bodies }))
}

describe('H369 a login form of the device', () => {
  it('is offered with what was seen, tried, and written; Postern signs in with it', async () => {
    const device = await startFormDevice()
    const { code, screen } = await onTerminal(
      device.url,
      ['Choice [5]: ', '\r'],
      ['User [admin]: ', 'jo\r'],
      ['to try it now', 'wrong\r'],
      ['to try it now', `${SECRET}\r`],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    const said = screen.replaceAll(/\s+/g, ' ')
    expect(said).toContain(
      'The device has a login form at /login.html, which sends user[name] and pw to /cgi-bin/login.',
    )
    expect(said).toContain('the device refuses it')
    expect(said).toContain('ok signing in: the device accepts it')
    expect(screen).not.toContain(SECRET)
    const { password, upstream } = written()
    expect(password).toEqual({ device: true })
    expect(upstream.auth).toEqual({
      kind: 'session',
      user: 'jo',
      checkPath: '/',
      session: {
        login: {
          method: 'POST',
          path: '/cgi-bin/login',
          page: '/login.html',
          form: { lang: 'en&US', on: '', 'user[name]': '$user', pw: '$password', keep: 'on', go: '1' },
        },
        expired: [401],
      },
    })
    const { auth } = JSON.parse(
      JSON.stringify({ auth: upstream.auth }).replace('"checkPath"', '"check_path"'),
    )
    const sidecar = await startSidecar({
      device,
      config: { password: { file: undefined, device: true }, upstream: { auth } },
    })
    const response = await sidecar.postToken({ grant_type: 'password', password: SECRET })
    expect(response.status).toBe(200)
    const { access_token: token } = response.json() as { access_token: string }
    expect((await sidecar.request({ path: '/status', token })).text).toBe('ok')
    expect(device.bodies.at(-1)).toBe('lang=en%26US&on=&user%5Bname%5D=jo&pw=correct+horse&keep=on&go=1')
  })

  it('asks for a page behind the login where none is known, and leaves a comment where it is not taken', async () => {
    const inPlace = await startDevice(
      (_request, response) => void response.end('<form method=post><input type=password name=p></form>'),
    )
    const { code, screen } = await onTerminal(
      inPlace.url,
      ['Choice [5]: ', '\r'],
      ['A page of the device that only opens after the login', 'status\r'],
      ['A page of the device that only opens after the login', '/status\r'],
      ['to try it now', `${SECRET}\r`],
      ['to try it now', '\r'],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen).not.toContain('User [')
    expect(screen.replaceAll(/\s+/g, ' ')).toContain('/status answered 200 and did not ask for a login')
    expect(written().upstream.auth).toMatchObject({
      checkPath: '/status',
      session: { login: { path: '/', form: { p: '$password' } } },
    })
    config = `${config}2`
    const { stdout } = await init((await startFormDevice()).url)
    expect(stdout).toContain('The device has a login form at /login.html')
    expect(readFileSync(config, 'utf8')).toMatch(
      /^ {2}# auth: \{kind: session, user: admin, password: \{file: .*\}, check_path: \/, session: \{login: \{path: \/cgi-bin\/login, page: \/login\.html, form: \{/m,
    )
  })

  it('H374 is not waited for if a page of the device does not end', async () => {
    const clock = stillClock()
    const begin = clock.monotonic()
    const device = await startDevice((request, response) =>
      request.url === '/' ? response.end('ok') : drip(response, clock),
    )
    const flags = ['--config', config, '--url', device.url, '--password-file', password]
    expect(await runInProcess(['init', ...flags], { clock })).toMatchObject({ code: 0 })
    expect(clock.monotonic() - begin).toBeLessThan(10_000)
  })

  const pageOf = (html: string, more: Partial<OwnResponse> = {}): OwnResponse => ({
    status: 200,
    fields: [],
    body: Buffer.from(html),
    ...more,
  })
  const find = (pages: Readonly<Record<string, OwnResponse>>) =>
    findLoginForm(
      { origin: 'http://device', get: async (path) => pages[path] ?? pageOf('', { status: 404 }) },
      '/',
    )
  const moved = (location: string): OwnResponse => pageOf('', { status: 302, fields: ['Location', location] })

  it.each<readonly [string, Readonly<Record<string, OwnResponse>>, object]>([
    [
      'behind two redirects: the second one asks to sign in',
      { '/': moved('http://device/a/?x=1'), '/a/?x=1': moved('../l'), '/l': pageOf(FORM) },
      { page: '/l', checkPath: '/a/?x=1' },
    ],
    [
      'behind a page that refreshes: nothing asks to sign in',
      { '/': pageOf('<META HTTP-EQUIV="Refresh" content="0; URL=\'/l\'">'), '/l': pageOf(FORM) },
      { page: '/l', checkPath: undefined },
    ],
    ['of a 401', { '/': pageOf(FORM, { status: 401 }) }, { page: '/', checkPath: '/' }],
    [
      'behind a form for a search',
      { '/': pageOf(`<form><input name=q></form><form method=POST><input type=password name=p>`) },
      { login: { path: '/', form: { p: '$password' } } },
    ],
    ...Object.entries<readonly [string, string, object?]>({
      'with an action below the base of the page': [
        '<base target=_top><base href="/cgi/"><base href="/no/"><form method=post action=login>',
        '/cgi/login',
      ],
      'with an empty action: it goes to the page, whatever the base': [
        '<base href="/cgi/"><form method=post action="">',
        '/l?x=1',
      ],
      'without an action': ['<base href="/cgi/"><form method=post>', '/l?x=1'],
      'with a fragment as action: it goes to the base': [
        '<base href="/cgi/"><form method=post action="#f">',
        '/cgi/',
      ],
      'with a query as action': ['<form method=post action="?do=login#f">', '/l?do=login'],
      'with a base that is no address': ['<base href="http://["><form method=post action=login>', '/login'],
      'with two actions: the first counts': ['<form method=post action="/a" action="/b">', '/a'],
      'with another action at its button': [
        '<form method=post action=/search><button formaction="/go">Log in</button>',
        '/go',
      ],
      'with an empty action at its button': [
        '<form method=post action=/no><input type=submit formaction="">',
        '/l?x=1',
      ],
      'with the method at its button': ['<form action=/go><button formmethod=POST formenctype="">', '/go'],
      'behind comments': ['<!--><!---><!-- <form> --><form method=post action=/go>', '/go'],
      'beside tags of other names': [
        '<form-x></form-x><form method=post action=/go><input-x name=q></input-x>',
        '/go',
      ],
    }).map(([what, [html, path]]): readonly [string, Readonly<Record<string, OwnResponse>>, object] => [
      what,
      { '/': moved('/l?x=1'), '/l?x=1': pageOf(`${html}<input type=password name=p></form>`) },
      { page: '/l?x=1', login: { path, form: { p: '$password' } }, typed: ['p'] },
    ]),
    [
      'behind a page that refreshes below its base',
      { '/': pageOf('<base href=/b/><meta http-equiv=refresh content="0; url=l">'), '/b/l': pageOf(FORM) },
      { page: '/b/l' },
    ],
    [
      'with references for characters',
      {
        '/': pageOf(
          '<form method=post action="&#x2F;a&#47;b"><input type=hidden name=v value="&#39;&#XE4;&constructor;&#x110000;"><input type=password name=p>',
        ),
      },
      { login: { path: '/a/b', form: { v: "'ä&constructor;&#x110000;", p: '$password' } } },
    ],
  ])('is found %s', async (_where, pages, form) => {
    expect(await find(pages)).toMatchObject(form)
  })

  it('sends the first button, also if it has no name and so adds nothing', async () => {
    const form = async (buttons: string) =>
      (await find({ '/': pageOf(`<form method=post><input type=password name=p>${buttons}</form>`) }))?.login
    const named = '<input type=submit name=b value=1>'
    expect(await form(named)).toEqual({ path: '/', form: { p: '$password', b: '1' } })
    expect(await form(`<button disabled name=a></button>${named}`)).toMatchObject({ form: { b: '1' } })
    for (const first of ['<button>Log in</button>', '<input type=submit>'])
      expect(await form(first + named)).toEqual({ path: '/', form: { p: '$password' } })
  })

  let visits = 0
  it.each<readonly [string, Readonly<Record<string, OwnResponse>>]>([
    ['no form', { '/': pageOf('<input type=password name=p>') }],
    ['no page', {}],
    [
      'a form that changes the password',
      { '/': pageOf(FORM.replace('</form>', '<input type=password name=q>')) },
    ],
    ['a form with three texts', { '/': pageOf(FORM.replace('<button', '<input name=domain><button')) }],
    ['a form by GET', { '/': pageOf(FORM.replace('method="post"', '')) }],
    [
      'a form whose button sends it by GET',
      { '/': pageOf(FORM.replace('<button', '<button formmethod=get')) },
    ],
    [
      'a form whose button sends files',
      { '/': pageOf(FORM.replace('<button', '<button formenctype=multipart/form-data')) },
    ],
    [
      'a form whose button leads to another host',
      { '/': pageOf(FORM.replace('<button', '<button formaction=//other/')) },
    ],
    ['a form below a base at another host', { '/': pageOf(`<base href="http://other/">${FORM}`) }],
    ['a form in a comment without its end', { '/': pageOf(`<!-- ${FORM}`) }],
    ['a form in a script without its end', { '/': pageOf(`<script>'</script '${FORM}`) }],
    ['a form for files', { '/': pageOf(FORM.replace('method', 'enctype="multipart/form-data" method')) }],
    ['a form for another host', { '/': pageOf(FORM.replace('/cgi-bin', 'http://other/cgi-bin')) }],
    ['a form for another scheme', { '/': pageOf(FORM.replace('/cgi-bin', 'https://device/cgi-bin')) }],
    ['a redirect to another scheme', { '/': moved('https://device/l'), '/l': pageOf(FORM) }],
    ['a redirect to another host', { '/': moved('http://other/'), '/other': pageOf(FORM) }],
    ['a loop of redirects', { '/': moved('/') }],
    [
      'a form with a value for each visitor',
      {
        get '/'() {
          visits += 1
          return pageOf(FORM.replace('en&amp;US', `${visits}`))
        },
      },
    ],
  ])('is not made up of %s', async (_what, pages) => {
    expect(await find(pages)).toBeUndefined()
  })
})

describe('H369 Basic and Digest', () => {
  it('an account that the device accepts is tried by a real login', async () => {
    const right = `Basic ${Buffer.from(`jo:${SECRET}`).toString('base64')}`
    const device = await startDevice((request, response) => {
      const isRight = request.headers.authorization === right
      response.writeHead(isRight ? 200 : 401, { 'WWW-Authenticate': 'Basic realm="x"' }).end()
    })
    const { code, screen } = await onTerminal(
      device.url,
      ['Choice [5]: ', '5\r'],
      ['User [admin]: ', 'jo\r'],
      ['to try it now', 'wrong\r'],
      ['to try it now', `${SECRET}\r`],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen).toMatch(/the device refuses it\n.*\nok {6}signing in: the device accepts it\n/)
    expect(written().upstream.auth).toEqual({ kind: 'basic', user: 'jo', checkPath: '/' })
  })
})

describe('H370 init writes what the device needs', () => {
  it('parser: tolerant, and says so', async () => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.end('HTTP/1.1 200 OK\nContent-Length: 0\n\n')
    })
    const { code, stderr } = await init(device.url)
    expect(code, stderr).toBe(0)
    expect(stderr).toMatch(
      /^WARNING device: .* malformed HTTP.*\n.*\n {8}init writes it: upstream: \{parser: tolerant\}\nok {6}device: /,
    )
    expect(readFileSync(config, 'utf8')).toContain(
      '  # What this device needs, as init found out.\n  parser: tolerant\n',
    )
    expect(written().upstream.parser).toBe('tolerant')
  })

  it.each<readonly [string, (head: string) => boolean, object]>([
    ['version: "1.0"', (head) => head.includes(' HTTP/1.0\r\n'), { version: '1.0' }],
    [
      'fields that are left out',
      (head) => !/^via:/im.test(head),
      { headers: { 'X-Forwarded-*': null, Via: null, 'X-Request-Id': null } },
    ],
  ])('%s', async (_what, fits, settings) => {
    const device = await startRawDevice(async (peer) => {
      const status = fits(await nextRequest(peer)) ? 200 : 400
      peer.end(`HTTP/1.0 ${status} x\r\nContent-Length: 0\r\n\r\n`)
    })
    const { code, stderr } = await init(device.url)
    expect(code, stderr).toBe(0)
    expect(written().upstream).toMatchObject(settings)
  })

  it('host: target, and nothing where no single setting helps', async () => {
    const device = await startDevice((request, response) => {
      const { host } = new URL(device.url)
      if (request.headers.host !== host) response.writeHead(421).end()
      else response.writeHead(request.headers['x-forwarded-for'] === undefined ? 200 : 400).end()
    })
    const { code, stderr } = await init(device.url)
    expect(code, stderr).toBe(0)
    expect(written().upstream).toMatchObject({ host: 'preserve', headers: {} })
    config = `${config}2`
    const picky = await startDevice((request, response) => {
      response.writeHead(request.headers.host === new URL(picky.url).host ? 200 : 421).end()
    })
    expect(await init(picky.url)).toMatchObject({ code: 0 })
    expect(written().upstream.host).toBe('target')
  })

  it('nothing for a device that behaves', async () => {
    const device = await startDevice()
    expect(await init(device.url)).toMatchObject({ code: 0 })
    expect(readFileSync(config, 'utf8')).not.toContain('What this device needs')
  })
})

describe('H371 oauth.revocation_path', () => {
  const revocation = (): unknown => written().oauth.revocationPath
  const withStatuses = (own: number, other: number): Promise<Device> =>
    startDevice((request, response) => {
      const status = request.url === '/' ? 200 : request.url === '/oauth/revoke' ? own : other
      response.writeHead(status).end()
    })

  it.each([
    ['has no such path', 404, 404, '/oauth/revoke'],
    ['answers every path with its login', 401, 401, '/oauth/revoke'],
    ['answers every path with its page', 200, 200, '/oauth/revoke'],
    ['has it', 200, 404, 'off'],
    ['has it for POST', 405, 404, 'off'],
    ['has it for its users', 401, 404, 'off'],
  ])('C1 at a device that %s', async (_what, own, other, path) => {
    const device = await withStatuses(own, other)
    const { code, stdout } = await init(device.url)
    expect(code).toBe(0)
    expect(revocation()).toBe(path)
    expect(stdout.includes('The device itself has /oauth/revoke')).toBe(path === 'off')
    expect(device.requests.filter(({ method }) => method !== 'GET')).toEqual([])
  })

  it('without a try, it is set, as in the shipped file', async () => {
    expect(await init('http://127.0.0.1:1', '--skip-checks')).toMatchObject({ code: 0 })
    expect(revocation()).toBe('/oauth/revoke')
    expect(loadConfig({ file: { path: 'p', text: shippedConfiguration() } }).oauth.revocationPath).toBe(
      '/oauth/revoke',
    )
  })

  it('C1 the device gets no logout of a client', async () => {
    const sidecar = await startSidecar({ config: { oauth: { revocation_path: '/oauth/revoke' } } })
    const { access_token } = await sidecar.grant()
    const body = `token=${access_token}`
    const fields = ['Content-Type', 'application/x-www-form-urlencoded']
    expect((await sidecar.request({ method: 'POST', path: '/oauth/revoke', body, fields })).status).toBe(200)
    expect((await sidecar.request({ token: access_token })).status).toBe(401)
    expect(sidecar.device.requests).toEqual([])
  })
})

const { POSTERN_CONFIG: _, ...env } = ENV

describe('the three commands at the end of init', () => {
  const commands = async (args: readonly string[], around: Surroundings) => {
    const { url } = await startDevice()
    const flags = ['init', '--url', url, '--password-file', password, ...args]
    const { code, stdout, stderr } = await runInProcess(flags, { env, user: process.getuid?.(), ...around })
    expect(code, stderr).toBe(0)
    return stdout.match(/^ {2}\S.*$/gm)
  }

  it('need no --config in the folder, and work there', async () => {
    expect(await commands([], { folder, typed: './postern' })).toEqual([
      '  ./postern check',
      '  ./postern serve',
      '  ./postern try /',
    ])
    const sets = ['listen', 'admin'].flatMap((name) => ['--set', `${name}.address=127.0.0.1:0`])
    const around = { env, folder, user: process.getuid?.() }
    expect(await runInProcess(['check', ...sets], around)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Ready: start it with postern serve --set/),
    })
  })

  it('name the file that is elsewhere, or in a folder that others may write', async () => {
    const flag = `--config ${config}`
    const named = [`  postern check ${flag}`, `  postern serve ${flag}`, `  postern try / ${flag}`]
    expect(await commands(['--config', config], { folder: temporaryDirectory() })).toEqual(named)
    const open = temporaryDirectory()
    chmodSync(open, 0o777)
    expect((await commands([], { folder: open }))?.[0]).toBe(
      `  postern check --config ${join(open, 'postern.yaml')}`,
    )
  })

  it('H367 name the file in a folder that others may write, and init says why', async () => {
    const open = temporaryDirectory()
    chmodSync(open, 0o777)
    const { url } = await startDevice()
    const flags = ['init', '--url', url, '--password-file', password]
    const around = { env, user: process.getuid?.() }
    const { stderr } = await runInProcess(flags, { ...around, folder: open })
    expect(stderr).toContain(
      `postern init: ${join(open, 'postern.yaml')} is not used without --config: other users can write ${open}; ` +
        `name a file with --config, or chmod go-w ${open}\n`,
    )
    for (const [more, folder] of [
      [[], temporaryDirectory()],
      [['--config', join(temporaryDirectory(), 'other.yaml')], open],
    ] as const)
      expect((await runInProcess([...flags, ...more], { ...around, folder })).stderr).not.toContain(
        '--config',
      )
  })

  it('name the file of the package in a folder with another postern.yaml', async () => {
    const shipped = join(temporaryDirectory(), 'postern.yaml')
    writeFileSync(shipped, shippedConfiguration())
    writeFileSync(config, '')
    expect((await commands([], { folder, defaultConfig: shipped, systemd: folder }))?.at(-1)).toBe(
      `  postern try / --config ${shipped}`,
    )
  })

  it('are not those of a service that has no --set', () => {
    const place = { typed: 'postern', env: {} }
    expect(nextCommands({ instance: 'boiler', set: ['realm=x'] }, place).serve).toMatch(
      /^postern serve --instance boiler --set /,
    )
  })

  it('are those of the service where a package has installed the configuration', async () => {
    const shipped = join(folder, 'postern.yaml')
    writeFileSync(shipped, shippedConfiguration(), { mode: 0o640 })
    const around = { folder: temporaryDirectory(), defaultConfig: shipped, defaultState: '/var/lib/postern' }
    expect(await commands([], { ...around, systemd: folder })).toEqual([
      '  runuser -u postern -- postern check',
      '  systemctl start postern',
      '  postern try /',
    ])
  })
})

describe('H372 the configuration that a package has installed', () => {
  const around = (): Surroundings => ({
    env,
    folder: temporaryDirectory(),
    user: process.getuid?.(),
    defaultConfig: config,
    defaultState: join(folder, 'state'),
  })
  const fill = async (place: Surroundings, ...args: string[]) => {
    const { url } = await startDevice()
    return runInProcess(['init', '--url', url, '--password-file', password, ...args], place)
  }

  it('is filled if nobody has touched it', async () => {
    writeFileSync(config, shippedConfiguration())
    const { code, stdout } = await fill(around())
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Written: ${config}\n`)])
    expect(written()).toMatchObject({ password: { file: password }, stateDir: join(folder, 'state') })
    expect(readdirSync(folder)).toEqual(['postern.yaml'])
    expect(statSync(config).mode & 0o777).toBe(0o600)
  })

  it('is left alone if somebody has changed a byte, and another file is written', async () => {
    const edited = `${shippedConfiguration()}# mine\n`
    writeFileSync(config, edited)
    const place = around()
    expect(await fill(place)).toMatchObject({ code: 0 })
    expect(readFileSync(config, 'utf8')).toBe(edited)
    expect(readdirSync(String(place.folder))).toEqual(['postern.yaml'])
    expect(await fill(place, '--config', config)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${config} exists, and init overwrites nothing`),
    })
  })

  it('stays as it was shipped if the device does not answer', async () => {
    writeFileSync(config, shippedConfiguration())
    const flags = ['init', '--url', `http://127.0.0.1:${await unusedPort()}`, '--password-file', password]
    expect(await runInProcess(flags, around())).toMatchObject({ code: 1 })
    expect(readFileSync(config, 'utf8')).toBe(shippedConfiguration())
    expect(readdirSync(folder)).toEqual(['postern.yaml'])
  })
})
