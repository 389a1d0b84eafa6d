from cuvil.cli import main

raise SystemExit(main())
