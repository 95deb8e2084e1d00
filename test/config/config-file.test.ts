import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfigFile } from '../../src/config/load.ts'

let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'postern-config-'))
})

afterAll(() => {
  rmSync(directory, { recursive: true })
})

function fileOf(content: string | Buffer): string {
  const path = join(directory, 'postern.yaml')
  writeFileSync(path, content)
  return path
}

describe('a configuration file', () => {
  it('is read as UTF-8, without its byte order mark', () => {
    const path = fileOf('\ufeffrealm: Tür')
    expect(readConfigFile(path)).toEqual({ path, text: 'realm: Tür' })
  })

  it('may be empty', () => {
    expect(readConfigFile(fileOf('')).text).toBe('')
  })

  it('must exist', () => {
    const path = join(directory, 'none.yaml')
    expect(() => readConfigFile(path)).toThrow(
      `${path}: there is no such file; name the configuration with --config`,
    )
  })

  it('is refused if a part of its path is a file, not a directory', () => {
    const path = join(fileOf(''), 'x')
    expect(() => readConfigFile(path)).toThrow(`${path}: ${join(path, '..')} is not a folder`)
  })

  it('must not be a directory', () => {
    expect(() => readConfigFile(directory)).toThrow(`${directory}: it is a folder; name the file in it`)
  })

  it('must not be larger than 1 MiB, also if its size is unknown', () => {
    const path = fileOf('#'.repeat(1024 * 1024 + 1))
    expect(() => readConfigFile(path)).toThrow(`${path}: is larger than 1 MiB; name a configuration file`)
    expect(() => readConfigFile('/dev/zero')).toThrow('/dev/zero: is larger than 1 MiB')
    expect(readConfigFile(fileOf('#'.repeat(1024 * 1024))).text).toHaveLength(1024 * 1024)
  })

  it('must be UTF-8', () => {
    const path = fileOf(Buffer.from([0x61, 0xff]))
    expect(() => readConfigFile(path)).toThrow(`${path}: is not UTF-8 text; save it as UTF-8`)
  })
})
