import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { imageFile } from '../../deploy/build/image-file.ts'
import { SOURCE, VENDOR } from './release-key.ts'

const TEMPLATE = readFileSync(join(import.meta.dirname, '../../deploy/Dockerfile'), 'utf8')

it('H347 the Dockerfile of a release has a label for what is known, and none for what is not', async () => {
  expect(await imageFile({ source: SOURCE })).toBe(
    `${TEMPLATE}LABEL org.opencontainers.image.revision="${SOURCE.commit}"
LABEL org.opencontainers.image.created="2023-11-14T22:13:20Z"
`,
  )
  const vendor = { ...VENDOR, name: 'A "B" \\ $HOME' }
  const text = await imageFile({ source: { ...SOURCE, changed: true }, vendor })
  expect(text.slice(text.lastIndexOf('postern.sbom'))).toContain(`
LABEL org.opencontainers.image.revision="${SOURCE.commit} with changed files"
LABEL org.opencontainers.image.created="2023-11-14T22:13:20Z"
LABEL org.opencontainers.image.vendor="A \\"B\\" \\\\ \\$HOME"
LABEL org.opencontainers.image.authors="${VENDOR.maintainer}"
LABEL org.opencontainers.image.url="${VENDOR.download}"
LABEL org.opencontainers.image.source="${VENDOR.download}"
`)
})
