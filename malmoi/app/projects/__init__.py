"""Making, filling, exporting and changing projects: what stands behind the pages 작업 and 설정."""
