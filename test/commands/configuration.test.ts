import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configFrom, configPath, withFlags } from '../../src/commands/configuration.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const FILE = 'upstream: {url: "http://127.0.0.1:8080"}\npassword: {file: x}\nrealm: here\n'

function place(): { readonly path: string; readonly write: () => void } {
  const path = join(temporaryDirectory(), 'postern.yaml')
  return { path, write: () => writeFileSync(path, FILE) }
}

describe('without --config', () => {
  it('the default file is used if it exists', () => {
    const { path, write } = place()
    expect(configPath({}, { env: {}, defaultConfig: path })).toBeUndefined()
    write()
    expect(configFrom({ set: [] }, { env: {}, defaultConfig: path })).toMatchObject({ realm: 'here' })
  })

  it('POSTERN_CONFIG comes before the default file; an empty one means no file', () => {
    const { path, write } = place()
    write()
    expect(configPath({}, { env: { POSTERN_CONFIG: 'other' }, defaultConfig: path })).toBe('other')
    expect(configPath({}, { env: { POSTERN_CONFIG: '' }, defaultConfig: path })).toBeUndefined()
    expect(configPath({ config: 'flag' }, { env: { POSTERN_CONFIG: 'other' } })).toBe('flag')
  })

  it('the error says where the configuration was looked for, and how to write one', () => {
    const { path } = place()
    expect(() => configFrom({ set: [] }, { env: {}, defaultConfig: path })).toThrow(
      `no configuration file is named, and there is neither a postern.yaml in this folder nor ${path}: name one with --config, or write one with postern init`,
    )
    expect(() => configFrom({ set: [] }, { env: {}, defaultConfig: path })).toThrow(
      /^no configuration file is named/,
    )
    const sets = ['upstream.url=http://127.0.0.1:8080', 'password.file=x']
    expect(configFrom({ set: sets }, { env: {}, defaultConfig: path })).toMatchObject({ realm: 'device' })
  })

  it('the error does not ask for a file if flags set all that has no default', () => {
    const { path } = place()
    const sets = ['upstream.url=http://127.0.0.1:8080', 'password.file=x', 'limits.api.requests=many']
    const failed = (set: readonly string[]) => () => configFrom({ set }, { env: {}, defaultConfig: path })
    expect(failed(sets)).toThrow(/^--set: limits\.api\.requests: .*"many"\)$/)
    expect(failed(sets.slice(1))).toThrow('no configuration file is named')
    expect(failed([...sets.slice(0, 1), ...sets.slice(2)])).toThrow('no configuration file is named')
    expect(failed([...sets, 'upstream.auth={kind: basic}'])).not.toThrow('no configuration file')
  })

  it('`withFlags` is a command to copy, which finds the same configuration and shows no secret', () => {
    expect(withFlags('postern', 'status', { set: [] })).toBe('postern status')
    expect(
      withFlags('./postern', 'status', {
        config: 'my postern.yaml',
        set: ['state_dir=a b', 'upstream.auth.password=secret'],
      }),
    ).toBe(
      "./postern status --config 'my postern.yaml' --set 'state_dir=a b' --set upstream.auth.password=...",
    )
    expect(withFlags('postern', 'status', { instance: 'boiler', set: [] })).toBe(
      'postern status --instance boiler',
    )
  })
})
