import { expect, it } from 'vitest'
import { widthOf } from '../../src/commands/columns.ts'
import { runAtKeyboard } from '../process/in-process.ts'
import { ENV, MAIN, prepareSite } from '../process/serve.ts'
import { makeNames } from '../support/passwords.ts'
import { runOnTerminal } from '../support/terminal.ts'

const LONG = 'n'.repeat(32)
const LABEL = '锅炉房监控 مراقب الغلاية, third floor'

it('H328 on a terminal of 80 columns each command fits, cuts no id, and has no colour with NO_COLOR; in a pipe each line is whole', async () => {
  const names = makeNames({ admin: undefined, [LONG]: 'read' })
  const site = await prepareSite({ config: names.config })
  const sidecar = await site.serveHere()
  const configured = ['--config', site.configFile]
  const type = async (...args: readonly string[]) => (await runAtKeyboard([...args, ...configured])).screen
  const issued = await type('issue', '--name', LONG, '--for', '90d', '--label', LABEL)
  const [, grant = ''] = /^ {2}.* revoke --grant (\S+) --config \S+$/m.exec(issued) ?? []
  expect(grant).toMatch(new RegExp(`^${LONG}\\.[\\da-f]{16}$`))
  const path = `/${'p'.repeat(40)}/${'q'.repeat(30)}`
  expect((await sidecar.request({ path })).status).toBe(401)
  const list = await site.postern('explain', '--json')
  const { id } = JSON.parse(list.stdout).requests.find((each: { path: string }) => each.path === path)

  const commands: Record<string, readonly string[]> = {
    status: ['status'],
    list: ['explain'],
    explain: ['explain', id],
    unknown: ['explain', 'unknown'],
    check: ['check', '--quiet'],
    issue: ['issue', '--name', LONG, '--for', '90'],
    revoke: ['revoke', '--grant', 'none'],
  }
  for (const [name, args] of Object.entries(commands)) {
    const screen = await type(...args)
    const wide = screen.split('\n').filter((line) => widthOf(line) > 80 && line.trim().includes(' '))
    // A command to copy is whole.
    expect(
      wide.filter((line) => !line.includes(' && ')),
      name,
    ).toEqual([])
    const [command = '', ...flags] = args
    const piped = await site.postern(command, ...flags)
    const [seen, whole] = [screen, piped.stderr + piped.stdout].map((text) =>
      text.replaceAll(/\d+[smh]\b|\s+/g, ''),
    )
    if (name !== 'list' && name !== 'explain') expect(seen, name).toBe(whole)
  }
  const status = await site.postern('status')
  expect(status.stdout).toMatch(new RegExp(`^${grant} {2}operator .* ${LABEL}$`, 'm'))
  // The program itself, on a terminal of the kernel.
  const command = [process.execPath, MAIN, 'status', ...configured]
  const real = await runOnTerminal(command, { env: { ...ENV, NO_COLOR: '1' }, term: 'xterm-256color' })
  expect(real.screen).toContain(`\n${grant}\n`)
  expect(real.screen).not.toContain('\u001b')
})
