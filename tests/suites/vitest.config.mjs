// Runs the tests of E2B's JavaScript SDKs against the packages of the registry, not the checkout's own sources.
import { defineConfig } from 'vitest/config'

const { SUITE_PACKAGE, SUITE_TESTS, SUITE_EXCLUDED, SUITE_NAMES } = process.env

const installed = {
  name: 'installed-sdk',
  enforce: 'pre',
  resolveId(source, importer, options) {
    const own = importer?.includes('/tests/') && /^\.\.?\/(.*\/)?src(\/|$)/.test(source)
    return own ? this.resolve(SUITE_PACKAGE, importer, { ...options, skipSelf: true }) : null
  },
}

export default defineConfig({
  plugins: [installed],
  test: {
    include: JSON.parse(SUITE_TESTS),
    exclude: JSON.parse(SUITE_EXCLUDED),
    testNamePattern: new RegExp(SUITE_NAMES),
    isolate: true,
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 90_000,
  },
})
