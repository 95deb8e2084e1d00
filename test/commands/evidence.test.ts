import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { Condition } from '../../src/commands/check/condition.ts'
import { CONDITIONS, type ConditionKey } from '../../src/commands/check/conditions.ts'
import { type EvidenceRow, evidenceOf } from '../../src/commands/check/evidence.ts'
import type { OpenRequirement } from '../../src/commands/check/open-requirement.ts'
import { REQUIREMENTS } from '../../src/commands/check/requirements.ts'
import { checkCommand } from '../../src/commands/check.ts'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { shellBlock } from '../support/pages.ts'
import { run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdHNhbHRzYWx0c2FsdHNhbHQ'

/** Files with these passwords, by name. */
function files(): { readonly hash: string; readonly plain: string } {
  const folder = temporaryDirectory()
  const write = (name: string, line: string): string => {
    const file = join(folder, name)
    writeFileSync(file, `${line}\n`, { mode: 0o600 })
    return file
  }
  return { hash: write('hash', HASH), plain: write('plain', 'pluck-a-plain-goose') }
}

const { hash, plain } = files()
const BASE = ['upstream.url=http://127.0.0.1:8080', `password.file=${hash}`]
const STORE = 'tokens.store=valkeys://store.example:6379'

interface Case {
  /** What is set, beside the base. */
  readonly set: readonly string[]
  readonly value: string
  /** Without one, that of the condition. */
  readonly key?: string
}

/** For each condition a configuration in which it holds, and one in which it does not. */
const CASES: Readonly<
  Record<ConditionKey, { readonly holds: readonly Case[]; readonly lacking: readonly Case[] }>
> = {
  enforce: { holds: [{ set: [], value: 'true' }], lacking: [{ set: ['enforce=false'], value: 'false' }] },
  'passwords.enforce': {
    holds: [{ set: [], value: 'not in use' }],
    lacking: [
      {
        set: ['password=', `passwords=[{name: monitor, file: ${hash}, allow: read, enforce: false}]`],
        key: 'passwords.0.enforce',
        value: 'false, for monitor',
      },
    ],
  },
  passwords: {
    holds: [
      {
        set: [
          'password=',
          `passwords=[{name: admin, file: ${hash}}, {name: monitor, file: ${plain}, allow: read}]`,
        ],
        value: '2 names, 1 without allow',
      },
    ],
    lacking: [
      { set: [], value: 'not set' },
      { set: ['password=', `passwords=[{name: admin, file: ${hash}}]`], value: '1 name, 1 without allow' },
      {
        set: [
          'password=',
          `passwords=[{name: admin, file: ${hash}}, {name: monitor, file: ${plain}, allow: [{}]}]`,
        ],
        value: '2 names, 2 without allow',
      },
      {
        set: [
          'password=',
          `passwords=[{name: admin, file: ${hash}}, {name: monitor, file: ${plain}, allow: [{paths: [/]}]}]`,
        ],
        value: '2 names, 2 without allow',
      },
      {
        set: ['password=', `passwords=[{name: admin, file: ${hash}}, {name: monitor, file: ${plain}}]`],
        value: '2 names, 2 without allow',
      },
    ],
  },
  public_paths: {
    holds: [{ set: [], value: 'none' }],
    lacking: [
      { set: ['public_paths=[/login, /static/]'], value: '/login, /static/' },
      {
        set: [
          'public_paths=[{path: /index.html, signed_in: true}]',
          'upstream.auth={kind: basic, user: u, password: {file: /p}}',
        ],
        value: '/index.html (signed in)',
      },
    ],
  },
  'listen.tls': {
    holds: [
      { set: [], value: 'auto' },
      { set: ['listen.tls={names: [device.example]}'], value: 'self-signed, for device.example' },
    ],
    lacking: [
      { set: ['listen.tls=off'], value: 'off' },
      { set: ['listen.tls=off', 'listen.insecure=true'], value: 'off' },
    ],
  },
  'listen.tls.cert': {
    holds: [{ set: ['listen.tls={cert: /c.pem, key: /k.pem}'], value: '/c.pem' }],
    lacking: [
      { set: [], value: 'auto' },
      { set: ['listen.tls=off'], value: 'off' },
    ],
  },
  'listen.trusted_proxies': {
    holds: [{ set: ['listen.trusted_proxies=10.0.0.1'], value: '10.0.0.1' }],
    lacking: [{ set: ['listen.trusted_proxies=0.0.0.0/0'], value: '0.0.0.0/0' }],
  },
  'listen.allow': {
    holds: [{ set: ['listen.allow=192.0.2.0/24'], value: '192.0.2.0/24' }],
    lacking: [
      { set: [], value: 'none' },
      { set: ['listen.allow=[0.0.0.0/1, 128.0.0.0/1]'], value: '0.0.0.0/1, 128.0.0.0/1' },
      { set: ['listen.allow=[192.0.2.0/24, "::/0"]'], value: '192.0.2.0/24, ::/0' },
    ],
  },
  'admin.address': {
    holds: [
      { set: [], value: '127.0.0.1:9464' },
      { set: ['admin.address=off'], value: 'off' },
      { set: ['admin.address=unix:/run/a.sock'], value: 'unix:/run/a.sock' },
    ],
    lacking: [{ set: ['admin.address=10.0.0.10:9464'], value: '10.0.0.10:9464' }],
  },
  'admin.tls': {
    holds: [
      { set: [], value: 'off' },
      { set: ['admin.address=10.0.0.10:9464', 'admin.tls=on'], value: 'on' },
    ],
    lacking: [{ set: ['admin.address=10.0.0.10:9464'], value: 'off' }],
  },
  'admin.password_file': {
    holds: [
      { set: ['admin.password_file=/p'], value: '/p' },
      { set: ['admin.address=off'], value: 'not set' },
    ],
    lacking: [{ set: [], value: 'not set' }],
  },
  'upstream.url': {
    holds: [
      { set: [], value: 'http://127.0.0.1:8080', key: 'upstream.url' },
      { set: ['upstream.url=https://device.example'], value: 'https://device.example', key: 'upstream.url' },
      { set: ['upstream.url=http+unix:/run/d.sock'], value: 'http+unix:/run/d.sock', key: 'upstream.url' },
    ],
    lacking: [
      { set: ['upstream.url=http://192.0.2.7'], value: 'http://192.0.2.7', key: 'upstream.url' },
      {
        set: ['upstream.routes={/s/: {url: "http://192.0.2.8"}}'],
        value: 'http://192.0.2.8',
        key: 'upstream.routes./s/.url',
      },
    ],
  },
  'upstream.tls.insecure': {
    holds: [
      { set: ['upstream.tls.insecure=true'], value: 'not in use' },
      { set: ['upstream.url=https://192.0.2.7'], value: 'false' },
    ],
    lacking: [{ set: ['upstream.url=https://192.0.2.7', 'upstream.tls.insecure=true'], value: 'true' }],
  },
  'upstream.tls.weak': {
    holds: [{ set: ['upstream.url=https://192.0.2.7'], value: 'false' }],
    lacking: [{ set: ['upstream.url=https://192.0.2.7', 'upstream.tls.weak=true'], value: 'true' }],
  },
  'upstream.tls.min_version': {
    holds: [
      { set: ['upstream.url=https://192.0.2.7', 'upstream.tls.min_version=TLSv1.3'], value: 'TLSv1.3' },
    ],
    lacking: [
      {
        set: ['upstream.url=https://192.0.2.7', 'upstream.tls={min_version: TLSv1.1, weak: true}'],
        value: 'TLSv1.1',
      },
    ],
  },
  'upstream.max_body': {
    holds: [{ set: ['upstream.max_body=1MiB'], value: '1MiB' }],
    lacking: [{ set: [], value: 'off' }],
  },
  'password.file': {
    holds: [
      { set: [], value: 'a hash' },
      {
        set: ['password={device: true}', 'upstream.auth={kind: basic, user: u}'],
        value: 'the device checks it',
        key: 'password.device',
      },
    ],
    lacking: [
      { set: [`password.file=${plain}`], value: 'it holds the password in plain text' },
      { set: ['password.file=/no/such/file'], value: 'not readable' },
      {
        set: [`password.file=${plain}`, `upstream.auth={kind: basic, user: u, password: {file: ${plain}}}`],
        value: 'it holds the password in plain text, to sign in to the device',
      },
      {
        set: [
          'password={device: true}',
          'upstream.auth={kind: basic, user: u}',
          `admin.password_file=${plain}`,
        ],
        value: 'it holds the password in plain text',
        key: 'admin.password_file',
      },
      {
        set: [`admin.password_file=${plain}`],
        value: 'it holds the password in plain text',
        key: 'admin.password_file',
      },
    ],
  },
  'limits.api.requests': {
    holds: [{ set: ['limits.api.requests=6000'], value: '6000 in 1m' }],
    lacking: [
      { set: ['limits.api.requests=1000000000'], value: '1000000000 in 1m' },
      {
        set: [
          'password=',
          'limits.api.per=name',
          `passwords=[{name: admin, file: ${hash}, limit: {requests: 1000000000}}]`,
        ],
        key: 'passwords.0.limit.requests',
        value: '1000000000 in 1m',
      },
      {
        set: ['browser={login: on, limit: {requests: 1000000000}}'],
        key: 'browser.limit.requests',
        value: '1000000000 in 1m',
      },
    ],
  },
  'limits.oauth.requests': {
    holds: [{ set: [], value: '30 in 1m' }],
    lacking: [
      { set: ['limits.oauth={requests: 30, window: 10s}'], value: '30 in 10s' },
      { set: ['limits.oauth={requests: 86400, window: 1d}'], value: '86400 in 1d' },
    ],
  },
  'limits.wrong_passwords': {
    holds: [{ set: ['limits.wrong_passwords=slow'], value: 'slow' }],
    lacking: [{ set: [], value: 'off' }],
  },
  'limits.store': {
    holds: [
      { set: [], value: 'not in use' },
      { set: [STORE, 'limits.store=shared'], value: 'shared' },
    ],
    lacking: [{ set: [STORE], value: 'local' }],
  },
  'tokens.store': {
    holds: [
      { set: [], value: 'file' },
      { set: [STORE], value: 'a shared store, over TLS' },
      { set: ['tokens.store=valkey://127.0.0.1:6379'], value: 'a shared store, without TLS' },
    ],
    lacking: [
      { set: ['tokens.store=valkey://u:canary@10.0.0.1:6379'], value: 'a shared store, without TLS' },
      // The sentinels and the cluster name the servers, which may be anywhere.
      {
        set: ['tokens.store=valkey+sentinel://127.0.0.1:26379/main'],
        value: 'a shared store, without TLS',
      },
      { set: ['tokens.store=valkey+cluster://127.0.0.1:6379'], value: 'a shared store, without TLS' },
    ],
  },
  'store.tls.insecure': {
    holds: [
      { set: [], value: 'not in use' },
      { set: [STORE], value: 'false' },
    ],
    lacking: [{ set: [STORE, 'store.tls.insecure=true'], value: 'true' }],
  },
  'tokens.access_lifetime': {
    holds: [{ set: [], value: '1h' }],
    lacking: [{ set: ['tokens.access_lifetime=2h'], value: '2h' }],
  },
  'tokens.refresh_lifetime': {
    holds: [{ set: [], value: '7d' }],
    lacking: [{ set: ['tokens.refresh_lifetime=31d'], value: '31d' }],
  },
  'tokens.grant_lifetime': {
    holds: [
      { set: [], value: 'off' },
      { set: ['tokens.rotate_refresh=true', 'tokens.grant_lifetime=30d'], value: '30d' },
    ],
    lacking: [{ set: ['tokens.rotate_refresh=true'], value: 'off' }],
  },
  'tokens.rotate_refresh': {
    holds: [{ set: ['tokens.rotate_refresh=true'], value: 'true' }],
    lacking: [{ set: [], value: 'false' }],
  },
  'tokens.refresh_grace': {
    holds: [
      { set: ['tokens.refresh_grace=1h'], value: 'not in use' },
      { set: ['tokens.rotate_refresh=true'], value: '10s' },
    ],
    lacking: [{ set: ['tokens.rotate_refresh=true', 'tokens.refresh_grace=2m'], value: '2m' }],
  },
  'tokens.issued': {
    holds: [{ set: ['tokens.issued=0'], value: '0' }],
    lacking: [{ set: [], value: '100' }],
  },
  'store.prefix': {
    holds: [
      { set: [], value: 'not in use' },
      { set: [STORE, 'store.prefix=pump'], value: 'pump' },
    ],
    lacking: [{ set: [STORE], value: 'postern' }],
  },
  'tokens.offline_grace': {
    holds: [
      { set: [], value: 'not in use' },
      { set: [STORE], value: '1h' },
    ],
    lacking: [{ set: [STORE, 'tokens.offline_grace=2h'], value: '2h' }],
  },
  'oauth.revocation_path': {
    holds: [{ set: ['oauth.revocation_path=/oauth/revoke'], value: '/oauth/revoke' }],
    lacking: [{ set: [], value: 'off' }],
  },
  'browser.idle': {
    holds: [
      { set: ['browser.idle=13h'], value: 'not in use' },
      { set: ['browser.login=on'], value: '12h' },
    ],
    lacking: [{ set: ['browser.login=on', 'browser.idle=13h'], value: '13h' }],
  },
  'browser.hsts': {
    holds: [{ set: ['browser.hsts=365d', 'listen.tls={cert: /c.pem, key: /k.pem}'], value: '365d' }],
    lacking: [
      { set: [], value: 'off' },
      { set: ['browser.hsts=1s', 'listen.tls={cert: /c.pem, key: /k.pem}'], value: '1s' },
    ],
  },
  'cors.origins': {
    holds: [
      { set: [], value: 'none' },
      { set: ['cors.origins=https://dash.example'], value: 'https://dash.example' },
    ],
    lacking: [{ set: ['cors.origins=http://dash.example'], value: 'http://dash.example' }],
  },
  'log.level': {
    holds: [{ set: [], value: 'info' }],
    lacking: [{ set: ['log.level=warn'], value: 'warn' }],
  },
  'log.access': {
    holds: [{ set: [], value: 'true' }],
    lacking: [
      { set: ['log.access=changes'], value: 'changes' },
      { set: ['log.access=false'], value: 'false' },
    ],
  },
  'log.format': {
    holds: [{ set: [], value: 'auto' }],
    lacking: [{ set: ['log.format=pretty'], value: 'pretty' }],
  },
}

function configOf(set: readonly string[]) {
  // A later source of the password replaces that of the base.
  const base = set.some((each) => /^password(?:=|\.file=)/.test(each)) ? BASE.slice(0, 1) : BASE
  return loadConfig({ sets: [...base, ...set].filter((each) => each !== 'password=') })
}

const needing = (
  key: ConditionKey,
  status: OpenRequirement['status'] = 'met if configured',
): OpenRequirement => ({
  requirement: 'Sample 1',
  clause: '1',
  status,
  keys: [key],
  vendor: null,
})

describe('H351 check --evidence judges', () => {
  const rows = Object.entries(CASES).flatMap(([key, { holds, lacking }]) => [
    ...holds.map((each) => ({ condition: key as ConditionKey, status: 'met' as const, ...each })),
    ...lacking.map((each) => ({ condition: key as ConditionKey, status: 'lacking' as const, ...each })),
  ])
  it.each(rows)(
    '$condition: $value is $status',
    async ({ condition, status, set, value, key = condition }) => {
      const found = await evidenceOf(configOf(set), [needing(condition)])
      const { wanted, cost }: Condition = CONDITIONS[condition]
      const row = {
        requirement: 'Sample 1',
        status,
        key,
        value,
        wanted,
        cost: status === 'met' ? null : cost,
      }
      expect(found).toContainEqual({
        ...row,
        key: expect.stringMatching(key === 'password.file' ? /^password/ : exactly(key)),
      })
      expect(new Set(found.map((each) => each.status))).toEqual(new Set([status]))
    },
  )
})

function exactly(key: string): RegExp {
  return new RegExp(`^${key.replaceAll(/[./]/g, '\\$&')}$`)
}

describe('H351 a requirement', () => {
  const both: OpenRequirement = { ...needing('enforce'), keys: ['enforce', 'log.level'] }

  it('is met if all of its conditions hold; else only those stand there that are lacking', async () => {
    expect(await evidenceOf(configOf([]), [both])).toMatchObject([
      { status: 'met', key: 'enforce', value: 'true' },
      { status: 'met', key: 'log.level', value: 'info' },
    ])
    expect(await evidenceOf(configOf(['enforce=false']), [both])).toMatchObject([
      { status: 'lacking', key: 'enforce' },
    ])
  })

  it('of which Postern does a part is never met, and says what is lacking', async () => {
    const part = [needing('enforce', 'contributes')]
    expect(await evidenceOf(configOf([]), part)).toEqual([])
    expect(await evidenceOf(configOf(['enforce=false']), part)).toMatchObject([
      { status: 'lacking', value: 'false' },
    ])
  })
})

interface Printed {
  readonly code: number
  readonly printed: string
}

async function checkEvidence(
  set: readonly string[],
  options: { readonly json?: boolean; readonly quiet?: boolean; readonly pages?: readonly string[] } = {},
): Promise<Printed> {
  const stdout = new PassThrough()
  const printed = text(stdout)
  const io = { stdout, stderr: new PassThrough(), env: {} }
  const code = await checkCommand({ ...options, evidence: true, set }, io).finally(() => stdout.end())
  return { code, printed: await printed }
}

const rowsIn = ({ printed }: Printed): readonly EvidenceRow[] => JSON.parse(printed).evidence

describe('H351 check --evidence', () => {
  const OFF = [
    ...BASE,
    'enforce=false',
    'listen.tls=off',
    'listen.insecure=true',
    'public_paths=[/login]',
    'upstream.routes={/s/: {url: "https://192.0.2.8", tls: {insecure: true}}}',
  ]
  const COSTS = {
    enforce: 'false',
    'listen.tls': 'off',
    public_paths: '/login',
    'upstream.routes./s/.tls.insecure': 'true',
  }

  it('shows what is switched off on purpose as what it costs, as text and as JSON', async () => {
    const [asText, quiet] = [await checkEvidence(OFF), await checkEvidence(OFF, { quiet: true })]
    const found = rowsIn(await checkEvidence(OFF, { json: true }))
    expect(asText.code).toBe(0)
    for (const [key, value] of Object.entries(COSTS)) {
      const name = key.includes('insecure') ? 'upstream.tls.insecure' : (key as ConditionKey)
      const { cost, wanted } = CONDITIONS[name]
      const lines = `LACKING ${key}: ${value}\n        costs: ${cost}\n        wanted: ${wanted}\n        needed for `
      expect(asText.printed).toContain(lines)
      expect(quiet.printed).toContain(lines)
      expect(found).toContainEqual(expect.objectContaining({ status: 'lacking', key, value, wanted, cost }))
    }
    expect(quiet.printed).not.toMatch(/^(?:holds|vendor)/m)
    expect(asText.printed).toMatch(/^holds {3}log\.level: info\n/m)
    expect(asText.printed).toMatch(/^vendor {2}EN 303 645 /m)
    expect(asText.printed).toMatch(/\n\nWhere Postern does a part .* docs\/evidence\.md .*\n$/)
    // A requirement with a condition that is lacking is nowhere met.
    const lacking = new Set(
      found.filter(({ status }) => status === 'lacking').map(({ requirement }) => requirement),
    )
    expect(found.filter(({ status, requirement }) => status === 'met' && lacking.has(requirement))).toEqual(
      [],
    )
  })

  it('says met only of what the page has as met if configured, and vendor only with the task of the page', async () => {
    const page = readFileSync(join(ROOT, 'docs/evidence.md'), 'utf8')
    const sectionOf = (requirement: string): string =>
      (page.split(`\n### ${requirement}\n`)[1] ?? '').split('\n### ')[0] ?? ''
    const configurations = [
      BASE,
      OFF,
      ...Object.values(CASES).map(({ holds: [first] }) => [...BASE, ...(first?.set ?? [])]),
    ]
    for (const set of configurations.filter((each) => !each.includes('password='))) {
      for (const { requirement, status, wanted } of rowsIn(await checkEvidence(set, { json: true }))) {
        const section = sectionOf(requirement)
        if (status === 'met') expect(section, requirement).toContain('- Status: **met if configured**\n')
        if (status === 'lacking')
          expect(section, requirement).toMatch(/\*\*(?:met if configured|contributes)\*\*\n/)
        if (status !== 'vendor') continue
        expect(section, requirement).toMatch(/\*\*(?:met if configured|vendor's task)\*\*\n/)
        const flat = section.replaceAll(/\s+/g, ' ')
        for (const sentence of wanted.split(/(?<=\.) (?=[A-Z])/))
          expect(flat, requirement).toContain(sentence)
      }
    }
    expect(rowsIn(await checkEvidence(BASE, { json: true })).length).toBeGreaterThan(REQUIREMENTS.length / 2)
  })

  it('shows no secret', async () => {
    const folder = temporaryDirectory()
    const file = join(folder, 'password')
    writeFileSync(file, 'canary-of-a-file\n', { mode: 0o600 })
    const set = [
      'upstream.url=http://192.0.2.7',
      'upstream.headers={X-Api-Key: canary-of-a-field}',
      `upstream.auth={kind: form, user: canary-user, password: {file: ${file}}, form: {fields: [pin=canary-of-a-form]}}`,
      `passwords=[{name: admin, file: ${file}}]`,
      'tokens.store=valkey://canary-name:canary-of-a-store@10.0.0.1:6379',
      `admin.password_file=${file}`,
    ]
    for (const options of [{}, { json: true }, { quiet: true }]) {
      const { code, printed } = await checkEvidence(set, options)
      expect(code).toBe(0)
      expect(printed).toContain('it holds the password in plain text')
      expect(printed).not.toContain('canary')
    }
  })

  it('is what docs/evidence.md has one type', async () => {
    const folder = temporaryDirectory()
    const bin = join(folder, 'postern')
    writeFileSync(bin, `#!/bin/sh\nexec ${process.execPath} ${join(ROOT, 'src/main.ts')} "$@"\n`, {
      mode: 0o755,
    })
    const env = {
      PATH: `${folder}:${process.env.PATH}`,
      POSTERN_CONFIG: '',
      POSTERN_UPSTREAM_URL: 'http://127.0.0.1:8080',
      POSTERN_PASSWORD_FILE: hash,
    }
    const typed = await run('sh', ['-ec', shellBlock('docs/evidence.md', 'check --evidence')], { env })
    expect(typed).toMatchObject({ code: 0, stderr: '' })
    const [asText = '', json = ''] = typed.stdout.split(/^(?=\{$)/m)
    expect(asText).toMatch(/^\d+ of \d+ requirements that depend on the configuration are met here\./)
    expect(JSON.parse(json)).toEqual({ evidence: await evidenceOf(configOf([])) })
  })

  it('contacts nobody', async () => {
    let connections = 0
    const device = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => device.listen(0, '127.0.0.1', resolve))
    closeLater(() => new Promise<void>((resolve) => void device.close(() => resolve())))
    const { port } = device.address() as { readonly port: number }
    const set = [`upstream.url=http://127.0.0.1:${port}`, `tokens.store=valkey://127.0.0.1:${port}`]
    const { code } = await checkEvidence([...set, `password.file=${hash}`])
    expect([code, connections]).toEqual([0, 0])
  })

  it('requests no page, and says so; an unusable configuration is one', async () => {
    await expect(checkEvidence(BASE, { pages: ['/status'] })).rejects.toThrow(
      '--evidence requests no page: leave out /status',
    )
    await expect(checkEvidence([...BASE, 'enforce=perhaps'])).rejects.toThrow('enforce')
    const { code, printed } = await checkEvidence([...BASE, 'enforce=perhaps'], { json: true })
    expect([code, JSON.parse(printed).evidence]).toEqual([2, undefined])
  })
})
