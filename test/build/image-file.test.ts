import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { imageFile } from '../../deploy/build/image-file.ts'
import { releaseOptions } from '../../deploy/build/release-options.ts'
import { SOURCE, VENDOR } from '../support/release-key.ts'

const TEMPLATE = readFileSync(join(import.meta.dirname, '../../deploy/Dockerfile'), 'utf8')
const BASE = `debian:12-slim@sha256:${'0123456789abcdef'.repeat(4)}`

it('H347 the Dockerfile of a release has a label for what is known, and none for what is not', async () => {
  expect(await imageFile({ source: SOURCE })).toBe(
    `${TEMPLATE}LABEL org.opencontainers.image.revision="${SOURCE.commit}"
LABEL org.opencontainers.image.created="2023-11-14T22:13:20Z"
`,
  )
  const vendor = { ...VENDOR, name: 'A "B" \\ $HOME' }
  const text = await imageFile({ source: { ...SOURCE, changed: true }, vendor, base: BASE })
  expect(text).toContain(`\nARG BASE=${BASE}\n`)
  expect(text.slice(text.lastIndexOf('postern.sbom'))).toContain(`
LABEL org.opencontainers.image.revision="${SOURCE.commit} with changed files"
LABEL org.opencontainers.image.created="2023-11-14T22:13:20Z"
LABEL org.opencontainers.image.vendor="A \\"B\\" \\\\ \\$HOME"
LABEL org.opencontainers.image.authors="${VENDOR.maintainer}"
LABEL org.opencontainers.image.url="${VENDOR.download}"
LABEL org.opencontainers.image.source="${VENDOR.download}"
`)
})

it.each(['debian:12-slim', `debian@sha256:${'0'.repeat(63)}`, `${BASE}\nRUN x`])(
  'a release refuses the base %j, which has no digest',
  (base) => {
    expect(() => releaseOptions(['--base', base], '/dist', '/')).toThrow('has no digest')
  },
)

it('a release takes a base with a digest', () => {
  expect(releaseOptions(['--base', BASE], '/dist', '/')?.base).toBe(BASE)
})
